// partition_to_offers: each library takes the calls that it is better at, in order of preference.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module partition_to_offers(const Module& module, PassContext& cx);

}  // namespace tenon::graph

// partition_to_offers: replaces calls that a library computes faster, libraries in order of
// preference.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module partition_to_offers(const Module& module, PassContext& cx);

}  // namespace tenon::graph

// call_known_functions: calls the function of a closure that is made in the same function directly,
// with its captures.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module call_known_functions(const Module& module, PassContext& context);

}  // namespace tenon::graph

// specialise_functions: a function that is called with a closure made in the caller, such as `map`
// with a function, is copied for the closure's function, whose captures become parameters. The copy
// makes the closure itself, so that its calls become direct ones (call_known_functions), and its
// calls of itself with the same closure become calls of the copy.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module specialise_functions(const Module& module, PassContext& context);

}  // namespace tenon::graph

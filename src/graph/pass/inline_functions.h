// inline_functions: puts a function's body where it is called, so that the passes after it see its
// arguments: constants, sizes and operators to fuse. The function must not lead back to itself, and
// must be small, be called in one place, or compute with tensors and take constants that its body
// could be compiled for. What is added to a module is bounded. The attribute `inline=false` of a
// function keeps its calls.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module inline_functions(const Module& module, PassContext& context);

}  // namespace tenon::graph

// fuse_loops: makes one kernel of a loop that only counts and calls kernels.
//
//   loop (%i = 0, %h = %start, %ys = []) while { %i < n } {
//     %y = kernel @step(%xs, %i, %h); (%i + 1, %y, append(%ys, %y))
//   }
//
// becomes a call of one kernel (loop::Recurrence), whose results are the last %h and all rows %ys:
// an iteration then costs no calls, no checks of arguments and no memory. The trip count must be a
// size that is known where the loop begins, so loops that the body ends early stay as they are.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module fuse_loops(const Module& module, PassContext& cx);

}  // namespace tenon::graph

// The verifier shares no code with the planner. It reads the finished module, takes each tensor's
// place from the intrinsics alone, tracks which memory each value may share (views, results of
// branches, fields of tuples, results of calls), and compares every pair of tensors in one storage.
// A kernel may overwrite an operand that it declares in place; nothing may read the operand's views
// afterwards.
#pragma once

#include "graph/ir/module.h"

namespace tenon::graph {

// Throws Error (Internal) if two live values of `module` overlap.
void verify_memory_plan(const Module& module);

}  // namespace tenon::graph

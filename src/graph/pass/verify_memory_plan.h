// The verifier shares no code with the planner. It reads the finished module, takes each tensor's
// place from the intrinsics alone, tracks which memory each value may share (views, results of
// branches, fields of tuples, results of calls), and requires that tensors of one storage which are
// alive together lie apart. A kernel may overwrite an operand that it declares in place; nothing
// may read the operand's views afterwards.
//
// Takes nearly linear time. So that a program which places tensors itself can't make it take
// longer, it refuses plans in which a value may share memory with more than 256 tensors, or more
// than 64 tensors are alive together in one storage, some of them at places that depend on symbols.
#pragma once

#include "graph/ir/module.h"

namespace tenon::graph {

// Throws Error (Internal) if two live values of `module` overlap.
void verify_memory_plan(const Module& module);

}  // namespace tenon::graph

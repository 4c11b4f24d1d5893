// slice_splits: reads the parts of a split where they are used.
//
//   i, g = split(x); mul(sigmoid(i), tanh(g))   becomes   mul(sigmoid(slice(x)), tanh(slice(x)))
//
// Only pointwise operators use the parts, each with slices of its own, which fusion makes index
// arithmetic: no kernel writes the parts, and no tensors hold them. One part may have other uses,
// too; more stay a split, which writes them all in one kernel.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module slice_splits(const Module& module, PassContext& cx);

}  // namespace tenon::graph

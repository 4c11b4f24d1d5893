// pack_constants: the constant right operand of a matrix product or convolution of our own is
// packed in panels of the columns that a tile takes, and unpacked inside the kernel that reads it.
//
// Folding then packs it once, at compile time, where the kernel would at each call. The width of a
// panel is a choice of the graph: it is made for the lowest CPU of the file.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module pack_constants(const Module& module, PassContext& cx);

}  // namespace tenon::graph

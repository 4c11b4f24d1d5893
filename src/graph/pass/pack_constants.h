// pack_constants: packs the constant right operand of Tenon's own matrix products and convolutions
// into panels as wide as a tile, and unpacks it inside the kernel that reads it.
//
// Folding then packs it once, at compile time, instead of the kernel on each call. The width of a
// panel is part of the graph, so it is chosen for the lowest CPU of the file.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module pack_constants(const Module& module, PassContext& cx);

}  // namespace tenon::graph

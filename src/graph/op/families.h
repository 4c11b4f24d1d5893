// A function for each operator family, which adds its operators; register_operators() calls them
// all.
#pragma once

#include "graph/ir/op.h"

namespace tenon::graph {

#define TENON_FAMILY(name) void register_##name(OperatorTable& table);
#include "graph/op/families.def"

}  // namespace tenon::graph

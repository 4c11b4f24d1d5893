// A few operators for the tests of this folder, which can't use graph/op.
#pragma once

#include "graph/ir/builder.h"

namespace tenon::graph {

// Registers relu add sub mul less matmul nonzero reshape shape_of concat split. May be called
// repeatedly.
void register_test_operators();

}  // namespace tenon::graph

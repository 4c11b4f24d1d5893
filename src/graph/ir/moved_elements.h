// Elements of integer tensors that only move on their way: types carry those of rank 0 and 1 alone.
#pragma once

#include <optional>
#include <vector>

#include "graph/ir/builder.h"

namespace tenon::graph {

// The elements of `value` in row-major order, if reshapes, transpositions and slices make it of an
// integer tensor whose elements are known, such as the pads that PyTorch reverses as a matrix of
// two columns.
std::optional<std::vector<Dim>> moved_elements(const Builder& builder, const Operand& value);

}  // namespace tenon::graph

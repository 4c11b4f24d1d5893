// Sparse constants: ONNX's SparseTensorProto as a dense value.
#pragma once

#include <string>
#include <string_view>

#include "graph/ir/builder.h"
#include "import/onnx/model.h"

namespace tenon::onnx {

// Why the tensor can't be imported, as its element type isn't implemented; empty if it can.
std::string problem_of(const SparseData& sparse);

// The dense tensor, which has no problem, as an expression that scatters the values over zeros:
// folding, with its limits, decides whether it is stored whole. `what` names the tensor in errors.
// Throws Damaged if values, indices and sizes don't fit each other.
graph::Operand dense(graph::Builder& builder, const SparseData& sparse, std::string_view what);

}  // namespace tenon::onnx

// Scalar expressions in operator notation, for lowerings: `a * b + c` instead of nested `binary`s.
// The operands of an operator have the same dtype; nothing converts implicitly.
#pragma once

#include <vector>

#include "loop/compute.h"

namespace tenon::graph {

using loop::binary;
using loop::BinaryOp;
using Scalar = loop::ExprRef;
using loop::index;
using loop::literal;
using loop::literal_int;
using loop::select;
using loop::unary;
using loop::UnaryOp;
using BufferRef = Ref<const loop::Buffer>;
using StageRef = Ref<const loop::Stage>;
using Indices = std::vector<Scalar>;

inline Scalar operator+(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kAdd, a, b);
}
inline Scalar operator-(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kSub, a, b);
}
inline Scalar operator*(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kMul, a, b);
}
inline Scalar operator/(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kDiv, a, b);
}
inline Scalar floor_div(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kFloorDiv, a, b);
}
inline Scalar modulo(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kMod, a, b);
}
inline Scalar min_of(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kMin, a, b);
}
inline Scalar max_of(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kMax, a, b);
}
inline Scalar eq(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kEq, a, b);
}
inline Scalar ne(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kNe, a, b);
}
inline Scalar lt(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kLt, a, b);
}
inline Scalar le(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kLe, a, b);
}
inline Scalar both(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kAnd, a, b);
}
inline Scalar either(const Scalar& a, const Scalar& b) {
  return binary(BinaryOp::kOr, a, b);
}

// A size as an i64 scalar; a constant size becomes a literal, so that it folds.
Scalar size(const Dim& d);
// `a` cast to the dtype, or `a` itself if it already has it.
Scalar as(DataType dtype, const Scalar& a);
// A literal of any numeric dtype.
Scalar number(DataType dtype, double value);

}  // namespace tenon::graph

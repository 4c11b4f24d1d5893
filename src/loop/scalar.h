// The exact semantics of scalar operations: docs/semantics.md for one element. Used by constant
// folding and the evaluator.
//
// A scalar is an int64_t in the form of Literal::bits: integers and booleans by value (u64 as its
// bits), floats as the bits of a double. Floats narrower than f32 are computed
// in f32 and rounded.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "loop/expr.h"
#include "object/narrow_float.h"

namespace tenon::loop {

inline double as_float(int64_t bits) {
  double d;
  std::memcpy(&d, &bits, sizeof d);
  return d;
}
inline int64_t float_bits(double d) {
  int64_t bits;
  std::memcpy(&bits, &d, sizeof d);
  return bits;
}

using tenon::round_to;

int64_t scalar_unary(UnaryOp op, DataType dtype, int64_t a);
// `dtype` is the operands'. nullopt for integer division or remainder by zero.
std::optional<int64_t> scalar_binary(BinaryOp op, DataType dtype, int64_t a, int64_t b);
int64_t scalar_cast(DataType to, DataType from, int64_t a);
// The bits of an element as one of another dtype of its width. A signalling NaN may become quiet.
int64_t scalar_bit_cast(DataType to, DataType from, int64_t a);

// Reads and writes one element in a tensor's memory, of at most 64 bits: a c64 as its bits.
int64_t scalar_load(DataType dtype, const void* element);
void scalar_store(DataType dtype, void* element, int64_t value);

}  // namespace tenon::loop

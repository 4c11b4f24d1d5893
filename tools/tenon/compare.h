// Expected against computed values, as ONNX's own runner compares: same count, dtype and shape;
// |found - expected| <= atol + rtol * |expected|; NaN equals NaN, an infinity itself alone;
// integers and booleans exactly.
#pragma once

#include <string>

#include "object/any.h"
#include "object/tensor.h"

namespace tenon::tool {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
};

struct Difference {
  bool equal = true;
  std::string reason;      // when not equal: dtype, shape, or the worst element
  double largest = 0;      // greatest absolute difference seen
  int64_t mismatches = 0;  // elements beyond tolerance
};

Difference compare(const Tensor& found, const Tensor& expected, const Tolerance& tolerance);
// The same of any values: floats within the tolerance, tuples and arrays field by field, the rest
// by structure. Functions are equal to no other.
Difference compare_values(const Any& found, const Any& expected, const Tolerance& tolerance);

}  // namespace tenon::tool

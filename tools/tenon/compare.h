// Compares computed with expected values like ONNX's test runner: same count, dtype and shape;
// |found - expected| <= atol + rtol * |expected|; NaN equals NaN, an infinity only itself; integers
// and booleans are compared exactly.
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
  std::string reason;      // if not equal: dtype, shape, or the worst element
  double largest = 0;      // the greatest absolute difference
  int64_t mismatches = 0;  // elements beyond tolerance
};

Difference compare(const Tensor& found, const Tensor& expected, const Tolerance& tolerance);
// The same for any values: floats within the tolerance, tuples and arrays field by field, others
// structurally. A function equals only itself.
Difference compare_values(const Any& found, const Any& expected, const Tolerance& tolerance);

}  // namespace tenon::tool

// Compares computed with expected values like ONNX's test runner: same count, dtype and shape;
// |found - expected| <= atol + rtol * |expected|; NaN equals NaN, an infinity only itself; integers
// and booleans are compared exactly, unless the tolerance is one of quantized values.
#pragma once

#include <cstdint>
#include <string>

#include "object/any.h"
#include "object/tensor.h"

namespace tenon::tool {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
  bool integers = false;  // `atol` is for them, too; otherwise they are compared exactly
  // Of quantized values, which differ by more than the tolerance where rounding went the other way
  // before them: elements may, if the root mean square of all differences is at most this share of
  // the standard deviation of what is expected. 0: none may.
  double noise = 0;
};

struct Difference {
  bool equal = true;
  std::string kind;        // how dtype, shape or kind of value differ; then nothing is compared
  bool exact = true;       // no tolerance applies: integers, booleans
  int64_t count = 0;       // elements compared
  int64_t mismatches = 0;  // elements beyond the tolerance
  int64_t nans = 0;        // elements that are NaN in both
  double noise = 0;        // that made elements beyond the tolerance agree: see Tolerance
  double largest = 0;      // the greatest absolute difference of finite elements
  std::string place;       // of the worst mismatch or, if all are equal, of that difference
  std::string worst;       // the worst mismatch: "expected 1, found 2"
};

// One line: "1000 elements, greatest difference 1e-05 at [0, 3] (rtol 0.001, atol 1e-07)", or how
// the values differ.
std::string to_text(const Difference& difference, const Tolerance& tolerance);

Difference compare(const Tensor& found, const Tensor& expected, const Tolerance& tolerance);
// The same for any values: floats within the tolerance, tuples, arrays and cells field by field,
// others structurally. A function equals only itself.
Difference compare_values(const Any& found, const Any& expected, const Tolerance& tolerance);

}  // namespace tenon::tool

// Compares computed with expected values: same count, dtype and shape; |found - expected| <= atol +
// rtol * |expected|; NaN equals NaN, an infinity only itself; integers and booleans are compared
// exactly, unless they are quantized. What is the default of all commands stands here and in
// docs/semantics.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "object/any.h"
#include "object/tensor.h"

namespace tenon::tool {

// How close values must be to agree.
struct Criterion {
  double rtol = 1e-3;
  // By default 1e-7, or 1e-4 of the greatest magnitude of what is expected if that is more, since
  // the rounding errors of a sum are relative to its terms; more for 16-bit floats, and for what is
  // quantized.
  std::optional<double> atol;
  bool quantized = false;    // a node before the value quantizes
  bool accumulates = false;  // the value sums products of quantized integers, in 32 bits
  // The greatest `Difference::noise` of the quantized values before it that agree.
  double noise_before = 0;

  // That of ONNX's test runner.
  static Criterion of_onnx() { return {.atol = 1e-7}; }
};

// What a criterion means for one value.
struct Tolerance {
  double rtol = 0, atol = 0;
  bool integers = false;  // they are for integers, too; otherwise those are compared exactly
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
  Tolerance tolerance;     // of the value, or of the part whose place is given
  // Of elements beyond the tolerance, where they may agree by it: see Tolerance. NaN: not computed.
  double noise = NAN;
  double largest = 0;  // the greatest absolute difference of finite elements
  std::string place;   // of the worst mismatch or, if all are equal, of that difference
  std::string worst;   // the worst mismatch: "expected 1, found 2"
};

// One line: "1000 elements, greatest difference 1e-05 at [0, 3] (rtol 0.001, atol 1e-07)", or how
// the values differ.
std::string to_text(const Difference& difference);

Difference compare(const Tensor& found, const Tensor& expected, const Criterion& criterion);
// The same for any values: floats within the tolerance, tuples, arrays and cells field by field,
// others structurally. A function equals only itself.
Difference compare_values(const Any& found, const Any& expected, const Criterion& criterion);

}  // namespace tenon::tool

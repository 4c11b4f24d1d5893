// Compares computed with expected tensors: same count, dtype and shape; |found - expected| <= atol
// + rtol * |expected|; NaN equals NaN, an infinity only itself; integers and booleans are compared
// exactly, unless they are quantized. The defaults of the commands and of tenon.testing in Python
// stand here and in docs/semantics.md.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "object/tensor.h"

namespace tenon::report {

inline constexpr double kLeastAtol = 1e-7;

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
  static Criterion of_onnx() { return {.atol = kLeastAtol}; }
};

// What a criterion means for one value.
struct Tolerance {
  double rtol = 0, atol = 0;
  bool integers = false;  // rtol and atol apply to integers, too, which are else compared exactly
  // Of quantized values, which differ by more than the tolerance where rounding went the other way
  // before them: elements may, if the root mean square of all differences is at most this share of
  // the standard deviation of what is expected. 0: none may.
  double noise = 0;
};

// Whether numbers that are not equal differ by more; of complex ones, the distance counts.
template <class T>
bool beyond(T found, T expected, const Tolerance& tolerance) {
  const double difference = std::abs(expected - found);
  if (!std::isfinite(difference)) return true;
  return difference > tolerance.atol + tolerance.rtol * std::abs(expected);
}

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
  double largest = 0;        // the greatest absolute difference of finite elements
  std::string place;         // of the worst mismatch or, if all are equal, of that difference
  std::string worst;         // the worst mismatch: "expected 1, found 2"
  int64_t worst_index = -1;  // its element of a tensor, counted in row-major order
  double worst_excess = 0;   // how far its numbers lie apart; infinite for strings and beside a NaN
};

// One line: "1000 elements, greatest difference 1e-05 at [0, 3] (rtol 0.001, atol 1e-07)", or how
// the values differ.
std::string to_text(const Difference& difference);

// Both are compact and on the CPU.
Difference compare(const Tensor& found, const Tensor& expected, const Criterion& criterion);

// The criteria of the values of an ONNX graph's nodes, one after the other. `op` is the operator of
// the next node: "QLinearConv" or "com.microsoft:QGemm".
class NodeCriteria {
 public:
  explicit NodeCriteria(const Criterion& criterion) : criterion_(criterion) {}
  const Criterion& next(std::string_view op);

 private:
  Criterion criterion_;
};

}  // namespace tenon::report

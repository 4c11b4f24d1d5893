#include "tools/tenon/compare.h"

#include <cmath>
#include <cstring>

#include "tools/tenon/tensor_text.h"

namespace tenon::tool {
namespace {

std::string type_text(const Tensor& tensor) {
  std::string out = cat(to_text(tensor.dtype()), "[");
  for (int32_t i = 0; i < tensor.rank(); ++i) out += cat(i ? ", " : "", tensor.dim(i));
  return out + "]";
}

uint64_t word(const Tensor& tensor, int64_t i) {
  uint64_t value;
  std::memcpy(&value, tensor.data_as<char>() + i * int64_t{sizeof value}, sizeof value);
  return value;
}

// The position of flat index `at`, as "[1, 0, 3]".
std::string position(const Tensor& tensor, int64_t at) {
  std::string out;
  for (int32_t i = tensor.rank(); i-- > 0;) {
    out = cat(at % tensor.dim(i), out.empty() ? "" : ", ", out);
    at /= tensor.dim(i);
  }
  return cat("[", out, "]");
}

}  // namespace

Difference compare(const Tensor& found, const Tensor& expected, const Tolerance& tolerance) {
  Difference out;
  const bool same_shape = std::equal(found.shape().begin(), found.shape().end(),
                                     expected.shape().begin(), expected.shape().end());
  if (found.dtype() != expected.dtype() || !same_shape) {
    out.equal = false;
    out.reason = cat("expected ", type_text(expected), ", found ", type_text(found));
    return out;
  }
  const bool exact = !expected.dtype().is_float();
  const bool wide = expected.dtype() == i64 || expected.dtype() == u64;  // a double holds not all
  int64_t worst = -1;
  double worst_excess = 0;
  for (int64_t i = 0, n = expected.count(); i < n; ++i) {
    const double e = element_as_double(expected, i), f = element_as_double(found, i);
    const bool same = wide ? word(expected, i) == word(found, i) : e == f;
    if (same || (std::isnan(e) && std::isnan(f))) continue;
    const double difference = std::abs(e - f);
    const bool bad = std::isnan(difference) || exact ||
                     difference > tolerance.atol + tolerance.rtol * std::abs(e);
    if (!std::isnan(difference)) out.largest = std::max(out.largest, difference);
    if (!bad) continue;
    ++out.mismatches;
    const double excess = std::isnan(difference) ? INFINITY : difference;
    if (worst < 0 || excess > worst_excess) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (worst >= 0) {
    out.equal = false;
    out.reason = cat(out.mismatches, " of ", expected.count(), " elements differ, most at ",
                     position(expected, worst), ": expected ", element_text(expected, worst),
                     ", found ", element_text(found, worst));
  }
  return out;
}

}  // namespace tenon::tool

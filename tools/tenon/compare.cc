#include "tools/tenon/compare.h"

#include <cmath>
#include <cstring>

#include "object/array.h"
#include "object/reflect.h"
#include "support/text.h"
#include "tools/tenon/tensor_text.h"

namespace tenon::tool {
namespace {

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

// For numbers that are not equal.
bool beyond(double found, double expected, const Tolerance& tolerance) {
  if (!std::isfinite(found) || !std::isfinite(expected)) return true;
  return std::abs(expected - found) > tolerance.atol + tolerance.rtol * std::abs(expected);
}

Difference difference_of_floats(double found, double expected, const Tolerance& tolerance) {
  Difference out;
  if (found == expected || (std::isnan(found) && std::isnan(expected))) return out;
  if (!std::isnan(found - expected)) out.largest = std::abs(found - expected);
  out.equal = !beyond(found, expected, tolerance);
  return out;
}

Difference difference_of_fields(const Array<Any>& found, const Array<Any>& expected,
                                const Tolerance& tolerance) {
  Difference out;
  if (found.size() != expected.size()) {
    out.equal = false;
    out.reason = cat("expected ", counted(expected.size(), "field"), ", found ", found.size());
    return out;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const Difference field = compare_values(found[i], expected[i], tolerance);
    out.largest = std::max(out.largest, field.largest);
    out.mismatches += field.mismatches;
    if (!field.equal && out.equal) {
      out.equal = false;
      out.reason = cat("field ", i, ": ", field.reason);
    }
  }
  return out;
}

}  // namespace

Difference compare_values(const Any& found, const Any& expected, const Tolerance& tolerance) {
  const auto tensor = expected.try_as<Tensor>();
  if (tensor && *tensor) {
    const auto other = found.try_as<Tensor>();
    if (other && *other) return compare(*other, *tensor, tolerance);
  }
  Difference out;
  if (found.type_index == expected.type_index) {
    if (expected.type_index == TypeIndex::Float) {
      out = difference_of_floats(found.as<double>(), expected.as<double>(), tolerance);
    } else if (expected.type_index == TypeIndex::Array) {
      return difference_of_fields(found.as<Array<Any>>(), expected.as<Array<Any>>(), tolerance);
    } else {
      out.equal = structural_equal(found, expected);
    }
  } else {
    out.equal = false;
  }
  if (!out.equal) {
    out.mismatches = 1;
    out.reason = cat("expected ", value_text(expected), ", found ", value_text(found));
  }
  return out;
}

Difference compare(const Tensor& found, const Tensor& expected, const Tolerance& tolerance) {
  Difference out;
  const bool same_shape = std::equal(found.shape().begin(), found.shape().end(),
                                     expected.shape().begin(), expected.shape().end());
  if (found.dtype() != expected.dtype() || !same_shape) {
    out.equal = false;
    out.reason = cat("expected ", to_text(expected), ", found ", to_text(found));
    return out;
  }
  const bool exact = !expected.dtype().is_float();
  const bool wide = expected.dtype() == i64 || expected.dtype() == u64;  // may not fit a double
  int64_t worst = -1;
  double worst_excess = 0;
  for (int64_t i = 0, n = expected.count(); i < n; ++i) {
    const double e = element_as_double(expected, i), f = element_as_double(found, i);
    const bool same = wide ? word(expected, i) == word(found, i) : e == f;
    if (same || (std::isnan(e) && std::isnan(f))) continue;
    const double difference = std::abs(e - f);
    const bool bad = exact || beyond(f, e, tolerance);
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

#include "tools/tenon/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "object/array.h"
#include "object/cell.h"
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

// The position of flat index `at`, as "[1, 0, 3]"; empty in a tensor of rank 0.
std::string position(const Tensor& tensor, int64_t at) {
  std::string out;
  for (int32_t i = tensor.rank(); i-- > 0;) {
    out = cat(at % tensor.dim(i), out.empty() ? "" : ", ", out);
    at /= tensor.dim(i);
  }
  return out.empty() ? out : cat("[", out, "]");
}

// For numbers that are not equal.
bool beyond(double found, double expected, const Tolerance& tolerance) {
  if (!std::isfinite(found) || !std::isfinite(expected)) return true;
  return std::abs(expected - found) > tolerance.atol + tolerance.rtol * std::abs(expected);
}

// What single values differ by.
Difference difference_of_scalars(const Any& found, const Any& expected,
                                 const Tolerance& tolerance) {
  Difference out;
  out.count = 1;
  if (expected.type_index == TypeIndex::Float) {
    const auto f = found.as<double>(), e = expected.as<double>();
    out.exact = false;
    out.nans = std::isnan(f) && std::isnan(e);
    if (std::isfinite(f - e)) out.largest = std::abs(f - e);
    out.equal = f == e || out.nans == 1 || !beyond(f, e, tolerance);
  } else {
    out.equal = structural_equal(found, expected);
  }
  return out;
}

// Adds what field `i` of a tuple has.
void add_field(Difference& whole, const Difference& field, size_t i) {
  if (!field.kind.empty()) whole.kind = cat("field ", i, ": ", field.kind);
  const bool worse = field.equal == whole.equal ? field.largest > whole.largest : !field.equal;
  if (worse) {
    whole.place = cat("field ", i, field.place.empty() ? "" : " ", field.place);
    whole.worst = field.worst;
  }
  whole.equal = whole.equal && field.equal;
  whole.exact = whole.exact && field.exact;
  whole.count += field.count;
  whole.mismatches += field.mismatches;
  whole.nans += field.nans;
  whole.largest = std::max(whole.largest, field.largest);
}

std::span<const Any> fields_of(const CellObj& cell) {
  return {cell.begin(), static_cast<size_t>(cell.size)};
}

Difference difference_of_fields(std::span<const Any> found, std::span<const Any> expected,
                                const Tolerance& tolerance) {
  Difference out;
  if (found.size() != expected.size()) {
    out.equal = false;
    out.kind = cat("expected ", counted(expected.size(), "field"), ", found ", found.size());
  }
  for (size_t i = 0; out.kind.empty() && i < found.size(); ++i) {
    add_field(out, compare_values(found[i], expected[i], tolerance), i);
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
  const std::string texts = cat("expected ", value_text(expected), ", found ", value_text(found));
  if (found.type_index != expected.type_index) {
    out.equal = false;
    out.kind = texts;
    return out;
  }
  if (expected.type_index == TypeIndex::Array) {
    return difference_of_fields(found.as<Array<Any>>().to_vector(),
                                expected.as<Array<Any>>().to_vector(), tolerance);
  }
  if (expected.type_index == TypeIndex::Cell) {
    const auto f = found.as<Ref<CellObj>>(), e = expected.as<Ref<CellObj>>();
    if (f->tag == e->tag) return difference_of_fields(fields_of(*f), fields_of(*e), tolerance);
    out.equal = false;
    out.kind = texts;
    return out;
  }
  out = difference_of_scalars(found, expected, tolerance);
  if (!out.equal) {
    out.mismatches = 1;
    out.worst = texts;
  }
  return out;
}

Difference compare(const Tensor& found, const Tensor& expected, const Tolerance& tolerance) {
  Difference out;
  const bool same_shape = std::equal(found.shape().begin(), found.shape().end(),
                                     expected.shape().begin(), expected.shape().end());
  if (found.dtype() != expected.dtype() || !same_shape) {
    out.equal = false;
    out.kind = cat("expected ", to_text(expected), ", found ", to_text(found));
    return out;
  }
  out.exact = !expected.dtype().is_float();
  out.count = expected.count();
  const bool wide = expected.dtype() == i64 || expected.dtype() == u64;  // may not fit a double
  int64_t worst = -1, largest = -1;
  double worst_excess = 0;
  for (int64_t i = 0; i < out.count; ++i) {
    const double e = element_as_double(expected, i), f = element_as_double(found, i);
    if (std::isnan(e) && std::isnan(f)) ++out.nans;
    const bool same = wide ? word(expected, i) == word(found, i) : e == f;
    if (same || (std::isnan(e) && std::isnan(f))) continue;
    const double difference = std::abs(e - f);
    if (std::isfinite(difference) && difference > out.largest) {
      out.largest = difference;
      largest = i;
    }
    if (!out.exact && !beyond(f, e, tolerance)) continue;
    ++out.mismatches;
    const double excess = std::isnan(difference) ? INFINITY : difference;
    if (worst < 0 || excess > worst_excess) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (worst >= 0) {
    out.equal = false;
    out.place = position(expected, worst);
    out.worst =
        cat("expected ", element_text(expected, worst), ", found ", element_text(found, worst));
  } else if (largest >= 0) {
    out.place = position(expected, largest);
  }
  return out;
}

std::string to_text(const Difference& difference, const Tolerance& tolerance) {
  const Difference& d = difference;
  const std::string bounds = cat("rtol ", tolerance.rtol, ", atol ", tolerance.atol);
  const std::string greatest = cat("greatest difference ", d.largest);
  if (!d.kind.empty()) return d.kind;
  if (!d.equal) {
    if (d.count == 1) return cat(d.worst, d.exact ? "" : cat(" (", bounds, ")"));
    return cat(d.mismatches, " of ", d.count, " elements differ",
               d.exact ? "" : cat(" by more than ", bounds), "; worst at ", d.place, ": ", d.worst,
               "; ", greatest);
  }
  const std::string elements = counted(static_cast<uint64_t>(d.count), "element");
  if (d.count > 0 && d.nans == d.count) {
    return cat(elements, d.count == 1 ? ", NaN in both" : ", all NaN in both");
  }
  return cat(elements, ", ", greatest, d.place.empty() ? "" : cat(" at ", d.place),
             d.exact ? "" : cat(" (", bounds, ")"),
             d.nans == 0 ? "" : cat("; ", d.nans, " NaN in both"));
}

}  // namespace tenon::tool

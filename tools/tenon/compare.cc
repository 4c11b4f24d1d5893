#include "tools/tenon/compare.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "object/array.h"
#include "object/cell.h"
#include "object/reflect.h"
#include "object/string_tensor.h"
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

// For numbers that are not equal; of complex ones, the distance counts.
template <class T>
bool beyond(T found, T expected, const Tolerance& tolerance) {
  const double difference = std::abs(expected - found);
  if (!std::isfinite(difference)) return true;
  return difference > tolerance.atol + tolerance.rtol * std::abs(expected);
}

bool both_nan(double found, double expected) {
  return std::isnan(found) && std::isnan(expected);
}

bool same_complex(std::complex<double> found, std::complex<double> expected) {
  const auto same = [](double f, double e) { return f == e || both_nan(f, e); };
  return same(found.real(), expected.real()) && same(found.imag(), expected.imag());
}

// Steps of a 16-bit float at a value's greatest magnitude, since the roundings of the nodes before
// it add up; MobileNetV2 in f16 needs 15 of 16. For quantized values, a step of 8 bits, and noise,
// to which the roundings of each node add: up to 11 % in MobileNetV2 and 16 % in MobileNetV3 with
// weights and activations of 8 bits. One node adds little, an error much: so noise beyond kNoise
// must have grown.
constexpr double kSteps = 16;
constexpr double kStepOf8Bits = 1.0 / 127;
constexpr double kNoise = 0.125, kNoiseGrowth = 1.5, kMostNoise = 0.25;
constexpr double kLeast = 1e-7;
// In f32, the results of a MobileNetV3 lie up to 5e-5 of the greatest from those in f64, ONNX
// Runtime's up to 2e-5.
constexpr double kShare = 1e-4;

double greatest_magnitude(const Tensor& t) {
  double greatest = 0;
  for (int64_t i = 0; i < t.count(); ++i) {
    const double magnitude = std::abs(element_as_complex(t, i));
    if (std::isfinite(magnitude)) greatest = std::max(greatest, magnitude);
  }
  return greatest;
}

Tolerance tolerance_for(const Tensor& expected, const Criterion& criterion) {
  Tolerance out{.rtol = criterion.rtol, .atol = criterion.atol.value_or(0)};
  const DataType dtype = expected.dtype();
  if (criterion.atol) return out;
  const double noise = std::clamp(kNoiseGrowth * criterion.noise_before, kNoise, kMostNoise);
  if (!dtype.is_float() && !dtype.is_complex()) {
    if (!criterion.quantized || dtype.is_bool()) return out;
    const bool is_sum = dtype.bits == 32 && criterion.accumulates;
    if (dtype.bits > 16 && !is_sum) return out;
    const double atol = is_sum ? std::max(1.0, kStepOf8Bits * greatest_magnitude(expected)) : 1;
    return {.rtol = 0, .atol = atol, .integers = true, .noise = noise};
  }
  double share = dtype == f16 ? kSteps * 0x1p-10 : dtype == bf16 ? kSteps * 0x1p-7 : kShare;
  if (criterion.quantized) {
    share = std::max(share, kStepOf8Bits);
    out.noise = noise;
  }
  out.atol = std::max(kLeast, share * greatest_magnitude(expected));
  return out;
}

// What single values differ by.
Difference difference_of_scalars(const Any& found, const Any& expected,
                                 const Criterion& criterion) {
  const Tolerance tolerance{.rtol = criterion.rtol, .atol = criterion.atol.value_or(kLeast)};
  Difference out;
  out.tolerance = tolerance;
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

// Two values to compare, which the values around them keep alive: fields of those at `parent`.
struct Part {
  const Any* found;
  const Any* expected;
  size_t parent;
  size_t field;
};
constexpr size_t kWhole = SIZE_MAX;  // parent of the values that are compared

// "field 1 field 0", from the outermost field.
std::string place_of(const std::vector<Part>& parts, size_t at) {
  constexpr size_t kMost = 8;  // fields in a message
  std::vector<size_t> fields;
  for (; parts[at].parent != kWhole; at = parts[at].parent) fields.push_back(parts[at].field);
  std::string out;
  for (size_t i = 0; i < std::min(fields.size(), kMost); ++i) {
    out += cat(i ? " " : "", "field ", fields[fields.size() - 1 - i]);
  }
  if (fields.size() > kMost) out += cat(" ... (", fields.size(), " fields deep)");
  return out;
}

std::string texts_of(const Any& found, const Any& expected) {
  return cat("expected ", value_text(expected), ", found ", value_text(found));
}

std::span<const Any> fields_of(const Any& value) {
  if (const auto* cell = value.as_object<CellObj>()) {
    return {cell->begin(), static_cast<size_t>(cell->size)};
  }
  const auto array = value.as<Array<Any>>();
  return {array.any_begin(), array.size()};
}

// Neither has parts. With a `kind`, they can't be compared.
Difference difference_of_leaves(const Any& found, const Any& expected, const Criterion& criterion) {
  const auto tensor = expected.try_as<Tensor>(), other = found.try_as<Tensor>();
  if (tensor && *tensor && other && *other) return compare(*other, *tensor, criterion);
  Difference out;
  if (found.type_index != expected.type_index) {
    out.equal = false;
    out.kind = texts_of(found, expected);
    return out;
  }
  out = difference_of_scalars(found, expected, criterion);
  if (!out.equal) {
    out.mismatches = 1;
    out.worst = texts_of(found, expected);
  }
  return out;
}

void add(Difference& whole, const Difference& part, const std::string& place) {
  const bool worse = part.equal == whole.equal ? part.largest > whole.largest : !part.equal;
  if (worse || whole.count == 0) whole.tolerance = part.tolerance;
  if (worse) {
    whole.place = cat(place, place.empty() || part.place.empty() ? "" : " ", part.place);
    whole.worst = part.worst;
  }
  whole.equal = whole.equal && part.equal;
  whole.exact = whole.exact && part.exact;
  whole.count += part.count;
  whole.mismatches += part.mismatches;
  whole.nans += part.nans;
  whole.noise = std::fmax(whole.noise, part.noise);
  whole.largest = std::max(whole.largest, part.largest);
}

// How two values with parts differ, apart from these; empty if they have as many parts to compare.
std::string difference_in_kind(const Any& found, const Any& expected) {
  const auto* e = expected.as_object<CellObj>();
  const auto* f = found.as_object<CellObj>();
  if (found.type_index != expected.type_index || (e && e->tag != f->tag)) {
    return texts_of(found, expected);
  }
  const size_t count = fields_of(expected).size();
  if (fields_of(found).size() == count) return "";
  return cat("expected ", counted(count, "field"), ", found ", fields_of(found).size());
}

}  // namespace

// Values may be nested to any depth, and share their parts: each pair of cells is compared once.
Difference compare_values(const Any& found, const Any& expected, const Criterion& criterion) {
  Difference out;
  std::vector<Part> parts{{&found, &expected, kWhole, 0}};
  std::vector<size_t> open{0};
  std::set<std::pair<const void*, const void*>> seen;
  while (!open.empty()) {
    const size_t at = open.back();
    const auto [f, e, parent, field] = parts[at];
    open.pop_back();
    const bool has_parts = e->type_index == TypeIndex::Cell || e->type_index == TypeIndex::Array;
    const Difference leaf = has_parts ? Difference() : difference_of_leaves(*f, *e, criterion);
    const std::string kind = has_parts ? difference_in_kind(*f, *e) : leaf.kind;
    if (!kind.empty()) {
      const std::string place = place_of(parts, at);
      out.equal = false;
      out.kind = cat(place, place.empty() ? "" : ": ", kind);
      return out;
    }
    if (!has_parts) {
      const bool tells = !leaf.equal || leaf.largest > out.largest;
      add(out, leaf, tells ? place_of(parts, at) : "");
    } else if (seen.emplace(f->v.object, e->v.object).second) {
      const std::span<const Any> of_found = fields_of(*f), of_expected = fields_of(*e);
      for (size_t i = of_expected.size(); i-- > 0;) {
        open.push_back(parts.size());
        parts.push_back({&of_found[i], &of_expected[i], at, i});
      }
    }
  }
  return out;
}

namespace {

// Of one shape: the first element that differs is the worst.
Difference compare_strings(const Tensor& found, const Tensor& expected) {
  Difference out;
  const Strings f(found), e(expected);
  out.count = e.size();
  for (int64_t i = 0; i < out.count; ++i) {
    if (f[i] == e[i]) continue;
    if (out.mismatches++ > 0) continue;
    out.equal = false;
    out.place = position(expected, i);
    out.worst = cat("expected ", element_text(expected, i), ", found ", element_text(found, i));
  }
  return out;
}

// The root mean square of the differences of finite elements, as a share of the standard deviation
// of those expected.
double noise_of(const Tensor& found, const Tensor& expected) {
  double count = 0, differences = 0, sum = 0, squares = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    const double e = element_as_double(expected, i), f = element_as_double(found, i);
    if (!std::isfinite(e) || !std::isfinite(f)) continue;
    ++count;
    differences += (f - e) * (f - e);
    sum += e;
    squares += e * e;
  }
  const double mean = sum / count, variance = squares / count - mean * mean;
  return variance > 0 ? std::sqrt(differences / count / variance) : INFINITY;
}

}  // namespace

Difference compare(const Tensor& found, const Tensor& expected, const Criterion& criterion) {
  Difference out;
  const bool same_shape = std::equal(found.shape().begin(), found.shape().end(),
                                     expected.shape().begin(), expected.shape().end());
  if (found.dtype() != expected.dtype() || !same_shape) {
    out.equal = false;
    out.kind = cat("expected ", to_text(expected), ", found ", to_text(found));
    return out;
  }
  if (is_string_tensor(expected)) return compare_strings(found, expected);
  const Tolerance tolerance = tolerance_for(expected, criterion);
  out.tolerance = tolerance;
  const bool is_complex = expected.dtype().is_complex();
  const bool is_number = expected.dtype().is_float() || is_complex;
  out.exact = !is_number && (!tolerance.integers || expected.dtype().is_bool());
  out.count = expected.count();
  const bool wide = expected.dtype() == i64 || expected.dtype() == u64;  // may not fit a double
  int64_t worst = -1, largest = -1;
  double worst_excess = 0;
  const auto consider = [&](int64_t i, auto f, auto e) {
    const double difference = std::abs(e - f);
    if (std::isfinite(difference) && difference > out.largest) {
      out.largest = difference;
      largest = i;
    }
    if (!out.exact && !beyond(f, e, tolerance)) return;
    ++out.mismatches;
    const double excess = std::isnan(difference) ? INFINITY : difference;
    if (worst < 0 || excess > worst_excess) {
      worst = i;
      worst_excess = excess;
    }
  };
  for (int64_t i = 0; i < out.count; ++i) {
    if (is_complex) {
      const auto e = element_as_complex(expected, i), f = element_as_complex(found, i);
      if (!same_complex(f, e)) consider(i, f, e);
      continue;
    }
    const double e = element_as_double(expected, i), f = element_as_double(found, i);
    if (both_nan(f, e)) ++out.nans;
    const bool same = wide ? word(expected, i) == word(found, i) : e == f;
    if (!same && !both_nan(f, e)) consider(i, f, e);
  }
  if (worst >= 0 && std::isfinite(worst_excess) && tolerance.noise > 0 && !out.exact &&
      !is_complex) {
    out.noise = noise_of(found, expected);
    if (out.noise <= tolerance.noise) {
      out.mismatches = 0;
      worst = -1;
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

namespace {

// Tolerances are shares of magnitudes; three digits tell them.
std::string short_number(double value) {
  char buffer[32];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 3);
  return {buffer, error == std::errc() ? end : buffer};
}

std::string percent(double share) {
  return cat(std::round(share * 1e4) / 100, " %");
}

}  // namespace

std::string to_text(const Difference& difference) {
  const Difference& d = difference;
  const std::string bounds =
      cat("rtol ", short_number(d.tolerance.rtol), ", atol ", short_number(d.tolerance.atol));
  const std::string greatest = cat("greatest difference ", d.largest);
  const std::string noise =
      std::isnan(d.noise) ? ""
                          : cat("; rms of the differences ", percent(d.noise),
                                " of the standard deviation, at most ", percent(d.tolerance.noise));
  if (!d.kind.empty()) return d.kind;
  if (!d.equal) {
    if (d.count == 1) return cat(d.worst, d.exact ? "" : cat(" (", bounds, ")"));
    return cat(d.mismatches, " of ", d.count, " elements differ",
               d.exact ? "" : cat(" by more than ", bounds), "; worst at ", d.place, ": ", d.worst,
               "; ", greatest, noise);
  }
  const std::string elements = counted(static_cast<uint64_t>(d.count), "element");
  if (d.count > 0 && d.nans == d.count) {
    return cat(elements, d.count == 1 ? ", NaN in both" : ", all NaN in both");
  }
  return cat(elements, ", ", greatest, d.place.empty() ? "" : cat(" at ", d.place),
             d.exact ? "" : cat(" (", bounds, ")"), noise,
             d.nans == 0 ? "" : cat("; ", d.nans, " NaN in both"));
}

}  // namespace tenon::tool

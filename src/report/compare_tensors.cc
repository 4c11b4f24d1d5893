#include "report/compare_tensors.h"

#include <algorithm>
#include <charconv>
#include <complex>
#include <cstring>

#include "object/string_tensor.h"
#include "report/elements.h"
#include "support/text.h"

namespace tenon::report {
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
  out.atol = std::max(kLeastAtol, share * greatest_magnitude(expected));
  return out;
}

// Whether the operator rounds to a few integers, so that numbers that are all but equal can become
// neighbours: QuantizeLinear, DynamicQuantizeLinear, QLinearConv, ...
bool quantizes(std::string_view op) {
  const auto has = [&](std::string_view part) { return op.find(part) != std::string_view::npos; };
  return has("QLinear") || (has("QuantizeLinear") && !has("DequantizeLinear"));
}

// Whether it sums products of quantized integers: MatMulInteger, ConvInteger, ...
bool accumulates(std::string_view op) {
  return op.ends_with("Integer");
}

// Of one shape: the first element that differs is the worst.
Difference compare_strings(const Tensor& found, const Tensor& expected) {
  Difference out;
  const Strings f(found), e(expected);
  out.count = e.size();
  for (int64_t i = 0; i < out.count; ++i) {
    if (f[i] == e[i]) continue;
    if (out.mismatches++ > 0) continue;
    out.equal = false;
    out.worst_index = i;
    out.worst_excess = INFINITY;
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
  const auto consider = [&](int64_t i, auto f, auto e) {
    const double difference = std::abs(e - f);
    if (std::isfinite(difference) && difference > out.largest) {
      out.largest = difference;
      largest = i;
    }
    if (!out.exact && !beyond(f, e, tolerance)) return;
    ++out.mismatches;
    const double excess = std::isnan(difference) ? INFINITY : difference;
    if (worst < 0 || excess > out.worst_excess) {
      worst = i;
      out.worst_excess = excess;
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
  if (worst >= 0 && std::isfinite(out.worst_excess) && tolerance.noise > 0 && !out.exact &&
      !is_complex) {
    out.noise = noise_of(found, expected);
    if (out.noise <= tolerance.noise) {
      out.mismatches = 0;
      worst = -1;
    }
  }
  if (worst >= 0) {
    out.equal = false;
    out.worst_index = worst;
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

const Criterion& NodeCriteria::next(std::string_view op) {
  criterion_.quantized = criterion_.quantized || quantizes(op);
  criterion_.accumulates = accumulates(op);
  return criterion_;
}

}  // namespace tenon::report

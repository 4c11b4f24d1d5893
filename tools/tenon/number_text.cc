#include "tools/tenon/number_text.h"

#include <cmath>
#include <limits>

#include "object/narrow_float.h"
#include "object/tensor.h"
#include "support/text.h"
#include "tools/tenon/parse_number.h"

namespace tenon::tool {
namespace {

// An integer type's least and greatest value; those of u64 are the bits of an int64_t.
struct Bounds {
  int64_t low, high;
};
Bounds bounds_of(DataType dtype) {
  if (dtype.is_bool()) return {0, 1};
  if (dtype == u64) return {0, -1};
  const int64_t high = INT64_MAX >> (64 - dtype.bits);
  return dtype.is_signed_int() ? Bounds{-high - 1, high} : Bounds{0, 2 * high + 1};
}

// 31, or 0x1f as in programs.
template <class T>
std::optional<T> parse_based(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  if (!digits.starts_with("0x")) return parse_number<T>(text);
  digits.remove_prefix(2);
  if (digits.starts_with('-')) return std::nullopt;
  return parse_number<T>(cat(negative ? "-" : "", digits), 16);
}

double greatest(DataType dtype) {
  if (dtype.is_narrow_float()) {
    return narrow_value(dtype, static_cast<uint16_t>(format_of(dtype).end_of_numbers() - 1));
  }
  return dtype == f32 ? static_cast<double>(std::numeric_limits<float>::max())
                      : std::numeric_limits<double>::max();
}

}  // namespace

std::string numbers_of(DataType dtype) {
  const std::string name = to_text(dtype);
  if (dtype == f32) return cat(name, " up to ", static_cast<float>(greatest(dtype)));
  if (dtype.is_float()) return cat(name, " up to ", greatest(dtype));
  if (dtype == u64) return cat(name, " from 0 to ", std::numeric_limits<uint64_t>::max());
  const Bounds bounds = bounds_of(dtype);
  return cat(name, " from ", bounds.low, " to ", bounds.high);
}

std::optional<int64_t> parse_integer(std::string_view text, DataType dtype) {
  if (dtype.is_bool() && text == "true") return 1;
  if (dtype.is_bool() && text == "false") return 0;
  if (dtype == u64) {
    const auto value = parse_based<uint64_t>(text);
    return value ? std::optional(static_cast<int64_t>(*value)) : std::nullopt;
  }
  const auto value = parse_based<int64_t>(text);
  const Bounds bounds = bounds_of(dtype);
  return value && *value >= bounds.low && *value <= bounds.high ? value : std::nullopt;
}

std::optional<double> parse_float(std::string_view text, DataType dtype) {
  const auto value = parse_number<double>(text);
  if (!value) return std::nullopt;
  const double rounded = round_to(dtype, *value);
  return std::isfinite(*value) && !std::isfinite(rounded) ? std::nullopt : std::optional(rounded);
}

std::optional<Any> scalar_value(DataType dtype, std::string_view text) {
  if (!is_scalar_dtype(dtype)) return std::nullopt;
  if (dtype.is_float()) {
    const auto number = parse_float(text, dtype);
    return number ? std::optional<Any>(*number) : std::nullopt;
  }
  const auto number = parse_integer(text, dtype);
  if (!number) return std::nullopt;
  return dtype.is_bool() ? Any(*number != 0) : Any(*number);
}

}  // namespace tenon::tool

// Numbers as text and back: tenon.text.format writes them as NumPy does, tenon.text.parse reads
// what ONNX's Cast reads.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/device.h"
#include "library/argument/argument.h"
#include "library/text/functions.h"
#include "object/narrow_float.h"
#include "support/poll.h"

namespace tenon::text {
namespace {

using namespace argument;

constexpr std::string_view kFormat = "tenon.text.format", kParse = "tenon.text.parse";

// ---- format ----

// Decimal digits d.ddd times ten to `exponent`.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

Decimal decimal_of(const char* begin, const char* end) {
  Decimal out;
  const char* e = std::find(begin, end, 'e');
  for (const char* c = begin; c != e; ++c) {
    if (*c != '.') out.digits += *c;
  }
  const char* exponent = e + 1;
  if (*exponent == '+') ++exponent;
  std::from_chars(exponent, end, out.exponent);
  return out;
}

// The fewest digits of a positive number that read back to it in its type.
Decimal shortest(double value, DataType dtype) {
  char room[64];
  const auto write = [&](auto number, auto... precision) -> const char* {  // returns its end
    const auto [end, error] = std::to_chars(room, room + sizeof room, number,
                                            std::chars_format::scientific, precision...);
    TENON_ASSERT(error == std::errc(), "a number is longer than its room");
    return end;
  };
  if (dtype == f64) return decimal_of(room, write(value));
  if (dtype == f32) return decimal_of(room, write(static_cast<float>(value)));
  for (int digits = 0;; ++digits) {
    const char* end = write(value, digits);
    double back = 0;
    std::from_chars(room, end, back);
    if (digits > 8 || narrow_bits(dtype, back) == narrow_bits(dtype, value))
      return decimal_of(room, end);
  }
}

// NumPy 2's str switches to scientific notation at this magnitude.
double positional_end(DataType dtype) {
  return dtype == f64 ? 1e16 : dtype == f32 ? 1e6 : 1e3;
}

// As NumPy's str, with a fraction of at least one digit or an exponent of at least two.
std::string float_text(double value, DataType dtype) {
  if (std::isnan(value)) return "nan";
  std::string out = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return out + "inf";
  if (value == 0) return out + "0.0";
  const Decimal d = shortest(std::fabs(value), dtype);
  const auto count = static_cast<int>(d.digits.size());
  if (std::fabs(value) < 1e-4 || std::fabs(value) >= positional_end(dtype)) {
    out += d.digits[0];
    if (count > 1) out += cat(".", d.digits.substr(1));
    const int size = std::abs(d.exponent);
    return out + cat("e", d.exponent < 0 ? "-" : "+", size < 10 ? "0" : "", size);
  }
  if (d.exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-d.exponent - 1), '0') + d.digits;
  const int whole = d.exponent + 1;
  if (count <= whole)
    return out + d.digits + std::string(static_cast<size_t>(whole - count), '0') + ".0";
  return out + d.digits.substr(0, static_cast<size_t>(whole)) + "." +
         d.digits.substr(static_cast<size_t>(whole));
}

constexpr std::string_view kTrue = "True", kFalse = "False";

uint64_t bits_at(const Tensor& t, int64_t i) {
  uint64_t bits = 0;
  const auto size = static_cast<size_t>(t.dtype().bytes());
  std::memcpy(&bits, t.data_as<char>() + static_cast<size_t>(i) * size, size);  // little-endian
  return bits;
}

double float_of(DataType dtype, uint64_t bits) {
  if (dtype == f64) return std::bit_cast<double>(bits);
  if (dtype == f32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return narrow_value(dtype, static_cast<uint16_t>(bits));
}

std::string text_of(DataType dtype, uint64_t bits) {
  if (dtype.is_bool()) return std::string(bits ? kTrue : kFalse);
  if (dtype.is_float()) return float_text(float_of(dtype, bits), dtype);
  if (dtype.is_unsigned_int()) return cat(bits);
  return cat(wrap_to(dtype, static_cast<int64_t>(bits)));
}

Tensor format(const Tensor& x) {
  require_host(kFormat, "x", x);
  StringTensorBuilder made(x.shape());
  Ticker ticker;
  for (int64_t i = 0, n = x.count(); i < n; ++i) {
    ticker.tick(size_t{256});
    made.append(text_of(x.dtype(), bits_at(x, i)));
  }
  return made.finish();
}

// ---- parse ----

[[noreturn]] void fail_number(std::string_view text, int64_t i, DataType dtype) {
  constexpr size_t kShown = 40;  // bytes
  throw Error(ErrorKind::Runtime, cat(kParse, ": the string can't be read as ", to_text(dtype)))
      .found(quoted(text.substr(0, kShown)), cat("element ", i));
}

// Without white space around it and a plus before it.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(begin);
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

// The exponent of the first decimal digit that is not 0: 2 of "123", -1 of "0.1e0". Far beyond any
// type's range where the written exponent is.
int64_t decimal_exponent(std::string_view text) {
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  const auto point = static_cast<int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first =
      static_cast<int64_t>(std::min(digits.find_first_of("123456789"), digits.size()));
  const int64_t place = first < point ? point - first - 1 : point - first;
  std::string_view power = text.substr(std::min(e + 1, text.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  constexpr int64_t kFar = int64_t{1} << 40;  // more than a text has digits
  int64_t written = 0;
  const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), written);
  if (error == std::errc::result_out_of_range) written = power.starts_with('-') ? -kFar : kFar;
  return place + std::clamp(written, -kFar, kFar);
}

template <class T>
bool read(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range && end == text.data() + text.size()) {
      *value = decimal_exponent(text) < 0 ? T{0} : std::numeric_limits<T>::infinity();
      if (text[0] == '-') *value = -*value;
      return true;
    }
  }
  return error == std::errc() && end == text.data() + text.size();
}

// The bits of the number in its type; nullopt if the text is none. The text of a boolean is 1 or 0,
// as the boolean is.
std::optional<uint64_t> parsed(std::string_view text, DataType dtype) {
  if (text == kTrue) text = "1";
  if (text == kFalse) text = "0";
  if (dtype.is_float()) {
    if (dtype == f32) {
      float value = 0;
      if (!read(text, &value)) return std::nullopt;
      return std::bit_cast<uint32_t>(value);
    }
    double value = 0;
    if (!read(text, &value)) return std::nullopt;
    return dtype == f64 ? std::bit_cast<uint64_t>(value) : narrow_bits(dtype, value);
  }
  if (dtype == u64) {
    uint64_t value = 0;
    return read(text, &value) ? std::optional(value) : std::nullopt;
  }
  int64_t value = 0;
  if (!read(text, &value) || wrap_to(dtype, value) != value) return std::nullopt;
  return static_cast<uint64_t>(value);
}

Tensor parse(const Tensor& x, const Any& to) {
  const Strings strings = strings_of(kParse, "x", x);
  const DataType dtype = to.type_index == TypeIndex::DataType ? to.as<DataType>() : DataType();
  const bool known =
      is_tensor_dtype(dtype) && (dtype.is_int() || dtype.is_float()) && dtype.bits >= 8;
  if (!known) fail(kParse, "'dtype' is not that of numbers");
  constexpr size_t kMostBytes = size_t{1} << 20;  // which are read without a poll
  Tensor numbers = allocate_tensor(x.shape(), dtype);
  const auto size = static_cast<size_t>(dtype.bytes());
  Ticker ticker;
  for (int64_t i = 0; i < strings.size(); ++i) {
    const std::string_view text = strings[i];
    if (text.size() > kMostBytes)
      fail(kParse, cat("a string of ", text.size(), " bytes, expected at most ", kMostBytes));
    ticker.tick(text.size() * 4);
    const std::optional<uint64_t> bits = parsed(trimmed(text), dtype);
    if (!bits) fail_number(text, i, dtype);
    std::memcpy(numbers.data_as<char>() + static_cast<size_t>(i) * size, &*bits, size);
  }
  return numbers;
}

}  // namespace

void register_numbers(Registration& functions) {
  library::add_typed(functions, library::signature(kFormat), format);
  library::add_typed(functions, library::signature(kParse), parse);
}

}  // namespace tenon::text

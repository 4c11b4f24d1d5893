#include "library/argument/argument.h"

#include <cstring>
#include <limits>

#include "object/narrow_float.h"
#include "support/bulk.h"

namespace tenon::argument {
namespace {

uint64_t bits_of(DataType dtype, const void* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(dtype.bytes()));  // little-endian
  return bits;
}

}  // namespace

void fail(std::string_view function, const std::string& what) {
  throw Error(ErrorKind::Runtime, cat(function, ": ", what));
}

namespace {

[[gnu::cold]] void fail_dtype(std::string_view function, std::string_view name, const Tensor& t) {
  fail(function, cat("'", name, "' is ", to_text(t.dtype()), ", which it can't take"));
}

}  // namespace

void require_elements(std::string_view function, std::string_view name, const Tensor& t) {
  if (!t) fail(function, cat("'", name, "' is absent"));
  if (t.device().device_type != kDLCPU) fail(function, cat("'", name, "' is not on the host"));
  if (!t.compact()) fail(function, cat("'", name, "' is not compact"));
  if (!is_tensor_dtype(t.dtype())) fail_dtype(function, name, t);
}

void require_host(std::string_view function, std::string_view name, const Tensor& t) {
  require_elements(function, name, t);
  if (t.dtype().is_complex()) fail_dtype(function, name, t);
}

void require_floats(std::string_view function, std::string_view name, const Tensor& t) {
  require_host(function, name, t);
  if (t.dtype() == f32 || t.dtype() == f64) return;
  fail(function, cat("'", name, "' is ", to_text(t.dtype()), ", expected f32 or f64"));
}

double float_at(const Tensor& t, int64_t i) {
  if (t.dtype() == f64) {
    double value;
    std::memcpy(&value, t.data_as<char>() + i * int64_t{sizeof value}, sizeof value);
    return value;
  }
  float value;
  std::memcpy(&value, t.data_as<char>() + i * int64_t{sizeof value}, sizeof value);
  return static_cast<double>(value);
}

void set_float(const Tensor& t, int64_t i, double value) {
  if (t.dtype() == f64) {
    std::memcpy(t.data_as<char>() + i * int64_t{sizeof value}, &value, sizeof value);
  } else {
    const auto narrow = static_cast<float>(value);
    std::memcpy(t.data_as<char>() + i * int64_t{sizeof narrow}, &narrow, sizeof narrow);
  }
}

int64_t integer_at(const Tensor& t, int64_t i) {
  int64_t value;
  std::memcpy(&value, t.data_as<char>() + i * int64_t{sizeof value}, sizeof value);
  return value;
}

void set_integer(const Tensor& t, int64_t i, int64_t value) {
  std::memcpy(t.data_as<char>() + i * int64_t{sizeof value}, &value, sizeof value);
}

std::vector<int64_t> integers_of(std::string_view function, std::string_view name,
                                 const Tensor& t) {
  require_host(function, name, t);
  if (t.dtype() != i64 || t.rank() != 1 || t.dim(0) > kMaxRank) {
    fail(function,
         cat("'", name, "' is ", to_text(t), ", expected tensor[n; i64], n at most ", kMaxRank));
  }
  std::vector<int64_t> out(static_cast<size_t>(t.count()));
  if (!out.empty()) std::memcpy(out.data(), t.data(), out.size() * sizeof(int64_t));
  return out;
}

Tensor list_of(std::span<const int64_t> values) {
  Tensor t = allocate_tensor(std::vector<int64_t>{static_cast<int64_t>(values.size())}, i64);
  copy_memory(t.data(), values.data(), values.size_bytes());
  return t;
}

int64_t axis_of(std::string_view function, int64_t axis, const Tensor& t) {
  if (axis < -t.rank() || axis >= t.rank()) {
    fail(function, cat("axis ", axis, " of a tensor of rank ", t.rank()));
  }
  return axis < 0 ? axis + t.rank() : axis;
}

namespace {

// Makes keys of the bits of a dtype's elements, in memory of the type Bits.
template <class Bits>
class KeyMaker {
 public:
  explicit KeyMaker(DataType dtype)
      : value_(static_cast<Bits>(std::numeric_limits<Bits>::max() >>
                                 (8 * sizeof(Bits) - dtype.bits))) {
    const auto top = static_cast<Bits>(Bits{1} << (dtype.bits - 1));
    if (dtype.is_signed_int()) sign_ = top;
    if (!dtype.is_float()) return;
    is_float_ = true;
    nan_key_ = value_;  // which no f32 or f64 has
    if (!dtype.is_narrow_float()) {
      sign_ = top;
      greatest_ = static_cast<Bits>(dtype == f32 ? 0x7f800000 : 0x7ff0000000000000);
      return;
    }
    const FloatFormat& format = format_of(dtype);
    nan_key_ = uint64_t{value_} + 1;
    sign_ = static_cast<Bits>(format.sign_bit());
    greatest_ = static_cast<Bits>(format.end_of_numbers() -
                                  (format.special == FloatFormat::kInfinities ? 0 : 1));
    minus_zero_is_nan_ = format.special == FloatFormat::kNegativeZero;
  }

  uint64_t operator()(Bits bits) const {
    bits = static_cast<Bits>(bits & value_);
    if (!is_float_) return static_cast<Bits>(bits ^ sign_);
    const auto magnitude = static_cast<Bits>(bits & ~sign_);
    const bool is_nan = magnitude > greatest_ || (minus_zero_is_nan_ && bits == sign_);
    // Negative floats are ordered by decreasing magnitude; both zeros map to the middle.
    const auto key = static_cast<Bits>(bits & sign_ ? sign_ - magnitude : sign_ + magnitude);
    return is_nan ? nan_key_ : key;
  }

  void operator()(const char* from, int64_t stride, std::span<uint64_t> keys) const {
    for (uint64_t& key : keys) {
      Bits bits;
      std::memcpy(&bits, from, sizeof bits);
      key = (*this)(bits);
      from += stride;
    }
  }

 private:
  Bits value_, sign_ = 0, greatest_ = 0;  // masks; the greatest magnitude of a number or infinity
  uint64_t nan_key_ = 0;
  bool is_float_ = false, minus_zero_is_nan_ = false;
};

}  // namespace

void element_keys(DataType dtype, const void* first, int64_t stride, std::span<uint64_t> keys) {
  const auto* from = static_cast<const char*>(first);
  switch (dtype.bytes()) {
    case 1:
      return KeyMaker<uint8_t>(dtype)(from, stride, keys);
    case 2:
      return KeyMaker<uint16_t>(dtype)(from, stride, keys);
    case 4:
      return KeyMaker<uint32_t>(dtype)(from, stride, keys);
    default:
      return KeyMaker<uint64_t>(dtype)(from, stride, keys);
  }
}

uint64_t element_key(DataType dtype, const void* element) {
  uint64_t key = 0;
  element_keys(dtype, element, 0, {&key, 1});
  return key;
}

namespace {

bool is_nonzero(DataType dtype, const char* element) {
  if (const DataType part = part_of(dtype); part != dtype) {
    return is_nonzero(part, element) || is_nonzero(part, element + part.bytes());
  }
  const uint64_t bits = bits_of(dtype, element);
  if (dtype.is_narrow_float()) return narrow_value(dtype, static_cast<uint16_t>(bits)) != 0;
  return (dtype.is_float() ? bits & ~(uint64_t{1} << (dtype.bits - 1)) : bits) != 0;
}

template <class Bits>
void any_bits(const char* from, Bits mask, std::span<uint8_t> found) {
  for (uint8_t& any : found) {
    Bits bits;
    std::memcpy(&bits, from, sizeof bits);
    any = (bits & mask) != 0;
    from += sizeof bits;
  }
}

}  // namespace

void are_nonzero(DataType dtype, const void* first, std::span<uint8_t> found) {
  const auto* from = static_cast<const char*>(first);
  if (dtype == f32) return any_bits<uint32_t>(from, 0x7fffffff, found);
  if (dtype.bytes() == 1 && !dtype.is_float()) return any_bits<uint8_t>(from, 0xff, found);
  for (uint8_t& any : found) {
    any = is_nonzero(dtype, from);
    from += dtype.bytes();
  }
}

Slices::Slices(const Tensor& x, int64_t axis) {
  TENON_ASSERT(x.count() > 0, "slices of a tensor without elements");
  for (int32_t i = 0; i < x.rank(); ++i) {
    (i < axis ? outer : i == axis ? n : inner) *= x.dim(i);
  }
}

}  // namespace tenon::argument

#include "report/elements.h"

#include <cstring>

#include "object/narrow_float.h"
#include "object/string_tensor.h"
#include "support/error.h"

namespace tenon::report {
namespace {

template <class T>
T at(const Tensor& tensor, int64_t i) {
  T value;
  std::memcpy(&value, tensor.data_as<char>() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
std::string complex_text(std::complex<T> value) {
  return cat("(", float_text(value.real()), ", ", float_text(value.imag()), ")");
}

}  // namespace

double element_as_double(const Tensor& tensor, int64_t i) {
  const DataType t = tensor.dtype();
  if (t == f32) return at<float>(tensor, i);
  if (t == f64) return at<double>(tensor, i);
  if (t.is_narrow_float())
    return narrow_value(t, t.bytes() == 1 ? at<uint8_t>(tensor, i) : at<uint16_t>(tensor, i));
  if (t == boolean) return at<uint8_t>(tensor, i);
  if (t.bytes() == 1) return static_cast<double>(wrap_to(t, at<uint8_t>(tensor, i)));
  if (t == i16) return at<int16_t>(tensor, i);
  if (t == u16) return at<uint16_t>(tensor, i);
  if (t == i32) return at<int32_t>(tensor, i);
  if (t == u32) return at<uint32_t>(tensor, i);
  if (t == i64) return static_cast<double>(at<int64_t>(tensor, i));
  if (t == u64) return static_cast<double>(at<uint64_t>(tensor, i));
  throw Error(ErrorKind::Unsupported, cat("elements of ", to_text(t), " cannot be read"));
}

std::complex<double> element_as_complex(const Tensor& tensor, int64_t i) {
  const DataType t = tensor.dtype();
  if (t == c64) return at<std::complex<float>>(tensor, i);
  return t == c128 ? at<std::complex<double>>(tensor, i) : element_as_double(tensor, i);
}

std::string element_text(const Tensor& tensor, int64_t i) {
  const DataType t = tensor.dtype();
  if (t == string_elements) return quoted(Strings(tensor)[i]);
  if (t == boolean) return at<uint8_t>(tensor, i) ? "true" : "false";
  if (t == i64) return cat(at<int64_t>(tensor, i));
  if (t == u64) return cat(at<uint64_t>(tensor, i));
  if (t == f64) return float_text(at<double>(tensor, i));
  if (t.is_float()) return float_text(static_cast<float>(element_as_double(tensor, i)));
  if (t == c64) return complex_text(at<std::complex<float>>(tensor, i));
  if (t == c128) return complex_text(at<std::complex<double>>(tensor, i));
  return cat(static_cast<int64_t>(element_as_double(tensor, i)));
}

}  // namespace tenon::report

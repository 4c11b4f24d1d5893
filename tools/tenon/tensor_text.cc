#include "tools/tenon/tensor_text.h"

#include <bit>
#include <cmath>

#include "object/array.h"
#include "object/reflect.h"
#include "object/shape.h"

namespace tenon::tool {
namespace {

template <class T>
T at(const Tensor& tensor, int64_t i) {
  T value;
  std::memcpy(&value, tensor.data_as<char>() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

}  // namespace

double element_as_double(const Tensor& tensor, int64_t i) {
  const DataType t = tensor.dtype();
  if (t == f32) return at<float>(tensor, i);
  if (t == f64) return at<double>(tensor, i);
  if (t == f16) return half_value(at<uint16_t>(tensor, i));
  if (t == boolean || t == u8) return at<uint8_t>(tensor, i);
  if (t == i8) return at<int8_t>(tensor, i);
  if (t == i16) return at<int16_t>(tensor, i);
  if (t == u16) return at<uint16_t>(tensor, i);
  if (t == i32) return at<int32_t>(tensor, i);
  if (t == u32) return at<uint32_t>(tensor, i);
  if (t == i64) return static_cast<double>(at<int64_t>(tensor, i));
  if (t == u64) return static_cast<double>(at<uint64_t>(tensor, i));
  throw Error(ErrorKind::Unsupported, cat("elements of ", to_text(t), " cannot be read"));
}

std::string element_text(const Tensor& tensor, int64_t i) {
  const DataType t = tensor.dtype();
  if (t == boolean) return at<uint8_t>(tensor, i) ? "true" : "false";
  if (t == i64) return cat(at<int64_t>(tensor, i));
  if (t == u64) return cat(at<uint64_t>(tensor, i));
  if (t == f64) return cat(at<double>(tensor, i));
  return cat(static_cast<float>(element_as_double(tensor, i)));
}

namespace {

constexpr int kDeepest = 6;       // nested tuples
constexpr size_t kLongest = 400;  // characters of any other value

std::string tensor_text(const Tensor& tensor, int64_t count) {
  std::string out = cat(to_text(tensor), " = ");
  if (tensor.rank() == 0) return out + element_text(tensor, 0);
  const int64_t total = tensor.count();
  out += "[";
  for (int64_t i = 0; i < std::min(total, count); ++i) {
    out += cat(i ? ", " : "", element_text(tensor, i));
  }
  return out + (total > count ? ", ...]" : "]");
}

std::string text_of(const Any& value, const vm::SignatureType& type, int64_t count, int depth) {
  using Kind = vm::SignatureType::Kind;
  if (auto tensor = value.try_as<Tensor>(); tensor && *tensor) return tensor_text(*tensor, count);
  if (auto fields = value.try_as<Array<Any>>(); fields && value.is_object()) {
    if (depth == kDeepest) return "(...)";
    std::string out = "(";
    const auto size = static_cast<int64_t>(fields->size());
    for (int64_t i = 0; i < std::min(size, count); ++i) {
      const auto at = static_cast<size_t>(i);
      const bool known = type.kind == Kind::Tuple && at < type.parts.size();
      out += cat(i ? ", " : "", text_of((*fields)[at], known ? type.parts[at] : vm::SignatureType(),
                                        count, depth + 1));
    }
    return out + (size > count ? ", ...)" : ")");
  }
  const bool scalar = type.kind == Kind::Scalar;
  if (value.type_index == TypeIndex::Float) {
    const auto number = value.as<double>();
    return scalar && type.dtype == f32 ? cat(static_cast<float>(number)) : cat(number);
  }
  if (value.type_index == TypeIndex::Int) {
    const auto number = value.as<int64_t>();
    return scalar && type.dtype == u64 ? cat(static_cast<uint64_t>(number)) : cat(number);
  }
  if (value.is_none()) return "none";
  if (auto shape = value.try_as<Shape>()) {
    std::string out = "shape(";
    for (size_t i = 0; i < shape->size(); ++i) out += cat(i ? ", " : "", (*shape)[i]);
    return out + ")";
  }
  return repr(value, kLongest);
}

}  // namespace

std::string value_text(const Any& value, const vm::SignatureType& type, int64_t count) {
  return text_of(value, type, count, 0);
}

}  // namespace tenon::tool

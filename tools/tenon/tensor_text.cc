#include "tools/tenon/tensor_text.h"

#include <bit>
#include <cmath>

#include "object/array.h"
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

std::string value_text(const Any& value, int64_t count) {
  if (auto tensor = value.try_as<Tensor>(); tensor && *tensor) {
    std::string out = cat(to_text(tensor->dtype()), "[");
    for (int32_t i = 0; i < tensor->rank(); ++i) out += cat(i ? ", " : "", tensor->dim(i));
    out += "] = ";
    const int64_t total = tensor->count();
    if (tensor->rank() == 0) return out + element_text(*tensor, 0);
    out += "[";
    for (int64_t i = 0; i < std::min(total, count); ++i) {
      out += cat(i ? ", " : "", element_text(*tensor, i));
    }
    return out + (total > count ? ", ...]" : "]");
  }
  if (auto fields = value.try_as<Array<Any>>(); fields && value.is_object()) {
    std::string out = "(";
    for (size_t i = 0; i < fields->size(); ++i) {
      out += cat(i ? ", " : "", value_text((*fields)[i], count));
    }
    return out + ")";
  }
  if (value.is_none()) return "none";
  if (value.type_index == TypeIndex::Bool) return value.as<bool>() ? "true" : "false";
  if (value.type_index == TypeIndex::Int) return cat(value.as<int64_t>());
  if (value.type_index == TypeIndex::Float) return cat(value.as<double>());
  if (auto shape = value.try_as<Shape>()) {
    std::string out = "shape(";
    for (size_t i = 0; i < shape->size(); ++i) out += cat(i ? ", " : "", (*shape)[i]);
    return out + ")";
  }
  return type_name(value.type_index);
}

}  // namespace tenon::tool

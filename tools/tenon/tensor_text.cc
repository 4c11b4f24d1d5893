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

// Without the sign of a NaN, which depends on the instructions that made it.
template <class T>
std::string float_text(T value) {
  return std::isnan(value) ? "nan" : cat(value);
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
  if (t == f64) return float_text(at<double>(tensor, i));
  if (t.is_float()) return float_text(static_cast<float>(element_as_double(tensor, i)));
  return cat(static_cast<int64_t>(element_as_double(tensor, i)));
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
  if (total <= count) return out + "]";
  return out + (count > 0 ? ", ...]" : "...]");
}

// A number, none, a shape, or any other value without fields.
std::string scalar_text(const Any& value, const vm::SignatureType& type) {
  const bool scalar = type.kind == vm::SignatureType::Kind::Scalar;
  if (value.type_index == TypeIndex::Float) {
    const auto number = value.as<double>();
    return scalar && type.dtype == f32 ? float_text(static_cast<float>(number))
                                       : float_text(number);
  }
  if (value.type_index == TypeIndex::Int) {
    const auto number = value.as<int64_t>();
    return scalar && type.dtype == u64 ? cat(static_cast<uint64_t>(number)) : cat(number);
  }
  if (value.is_none()) return "none";
  if (auto shape = value.try_as<Shape>()) {
    std::string out = "shape[";
    for (size_t i = 0; i < shape->size() && out.size() < kLongest; ++i) {
      out += cat(i ? ", " : "", (*shape)[i]);
    }
    return out + (out.size() < kLongest ? "]" : ", ...]");
  }
  return repr(value, kLongest);
}

class Printer {
 public:
  Printer(int64_t count, size_t most) : count_(count), most_(most) {}

  void print(const Any& value, const vm::SignatureType& type, int depth) {
    if (out_.size() >= most_) {
      out_ += "...";
    } else if (auto tensor = value.try_as<Tensor>(); tensor && *tensor) {
      out_ += tensor_text(*tensor, count_);
    } else if (auto fields = value.try_as<Array<Any>>(); fields && value.is_object()) {
      print_fields(*fields, type, depth);
    } else {
      out_ += scalar_text(value, type);
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void print_fields(const Array<Any>& fields, const vm::SignatureType& type, int depth) {
    if (depth == kDeepest) {
      out_ += "(...)";
      return;
    }
    out_ += "(";
    const auto shown = std::min(fields.size(), static_cast<size_t>(count_));
    for (size_t i = 0; i < shown && out_.size() < most_; ++i) {
      if (i > 0) out_ += ", ";
      const bool known = type.kind == vm::SignatureType::Kind::Tuple && i < type.parts.size();
      print(fields[i], known ? type.parts[i] : vm::SignatureType(), depth + 1);
    }
    out_ += fields.size() > shown || out_.size() >= most_ ? ", ...)" : ")";
  }

  int64_t count_;
  size_t most_;
  std::string out_;
};

}  // namespace

std::string value_text(const Any& value, const vm::SignatureType& type, int64_t count,
                       size_t most) {
  Printer printer(count, most);
  printer.print(value, type, 0);
  return printer.take();
}

}  // namespace tenon::tool

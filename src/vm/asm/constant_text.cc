#include "vm/asm/constant_text.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "object/device_name.h"
#include "object/shape.h"
#include "object/string.h"
#include "object/string_tensor.h"
#include "object/tensor.h"
#include "support/text.h"
#include "support/utf8.h"
#include "vm/isa/limits.h"
#include "vm/isa/operand_check.h"
#include "vm/isa/signature.h"

namespace tenon::vm {
namespace {

constexpr int64_t kListedElements = 64;

template <class T>
T load(const void* data, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

int64_t load_int(const void* data, DataType t, int64_t i) {
  bool is_signed = t.is_signed_int();
  switch (t.bits) {
    case 8:
      return is_signed ? load<int8_t>(data, i) : load<uint8_t>(data, i);
    case 16:
      return is_signed ? load<int16_t>(data, i) : load<uint16_t>(data, i);
    case 32:
      return is_signed ? load<int32_t>(data, i) : int64_t{load<uint32_t>(data, i)};
    default:
      return load<int64_t>(data, i);
  }
}

bool is_listed(DataType t, int64_t count) {
  if (count > kListedElements || count == 0) return false;
  return t.is_signed_int() || (t.is_unsigned_int() && t.bits < 64);
}

std::string strings_text(const Tensor& t) {
  const Strings elements(t);
  std::string out = " {";
  for (int64_t i = 0; i < elements.size(); ++i) out += cat(i ? ", " : "", quoted(elements[i]));
  return out + "}";
}

std::string tensor_text(const Tensor& t, int64_t max_elements) {
  std::vector<SignatureDim> dims;
  for (int64_t d : t.shape()) dims.push_back(SignatureDim::constant(d));
  std::string out = to_text(SignatureType::tensor(t.dtype(), dims));
  int64_t count = t.count();
  if (count > max_elements) return out + " elided";
  if (is_string_tensor(t)) return out + strings_text(t);
  if (is_listed(t.dtype(), count)) {
    out += " {";
    for (int64_t i = 0; i < count; ++i) {
      out += (i ? ", " : "") + cat(load_int(t.data(), t.dtype(), i));
    }
    return out + "}";
  }
  return out + " hex \"" +
         hex_bytes({static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes())}) + "\"";
}

void store_int(void* data, DataType t, int64_t i, int64_t v) {
  int64_t size = t.bytes();
  std::memcpy(static_cast<char*>(data) + i * size, &v, static_cast<size_t>(size));  // little-endian
}

bool fits(DataType t, int64_t v) {
  if (t.bits == 64) return true;
  int64_t high = int64_t{1} << (t.is_signed_int() ? t.bits - 1 : t.bits);
  return v < high && v >= (t.is_signed_int() ? -high : 0);
}

struct TensorType {
  DataType dtype;
  std::vector<int64_t> shape;
};

// A constant's type: its dimensions are numbers.
TensorType parse_tensor_type(LineCursor& in) {
  size_t start = in.position();
  std::string_view text = in.balanced_until(" \t");  // spaces within the type are in brackets
  SignatureType type;
  try {
    type = parse_signature_type(text);
  } catch (const Error& e) {
    in.fail(e.message(), "a tensor type", start);
  }
  std::vector<int64_t> shape;
  for (const SignatureDim& d : type.dims) {
    if (!d.is_constant()) in.fail("a constant's dimensions must be numbers", "a number", start);
    shape.push_back(d.value);
  }
  const bool known = is_tensor_dtype(type.dtype) || type.dtype == string_elements;
  if (!type.dims_known || !known) {
    in.fail("a constant can't have this type", "a tensor with numbers for dimensions", start);
  }
  return {type.dtype, std::move(shape)};
}

Any parse_strings(LineCursor& in, std::span<const int64_t> shape, size_t start) {
  std::vector<std::string> texts;
  in.need('{');
  if (!in.take('}')) {
    do {
      const size_t at = in.position();
      texts.push_back(in.string());
      if (!is_utf8(texts.back())) in.fail("this string is not valid UTF-8", "UTF-8", at);
    } while (in.take(','));
    in.need('}');
  }
  if (static_cast<int64_t>(texts.size()) != element_count(shape)) {
    in.fail("the elements don't fit the shape", cat(*element_count(shape), " strings"), start);
  }
  return Any(string_tensor(shape, std::vector<std::string_view>(texts.begin(), texts.end())));
}

Any parse_tensor(LineCursor& in) {
  size_t start = in.position();
  const auto [dtype, shape] = parse_tensor_type(in);
  auto bytes = byte_count(shape, dtype);
  constexpr int64_t kMaxWritten = int64_t{1} << 40;
  if (!bytes || *bytes > kMaxWritten) in.fail("the tensor is too large", "", start);

  if (in.take_word("elided")) {
    in.fail("the data of this constant was elided when the text was printed",
            "text printed with all constants");
  }
  if (dtype == string_elements) return parse_strings(in, shape, start);
  std::string data;
  std::vector<int64_t> values;
  size_t data_at = in.position();
  if (in.take_word("hex")) {
    data = in.hex_string();
    if (data.size() != static_cast<size_t>(*bytes)) {
      in.fail("the bytes don't fit the shape", cat(2 * *bytes, " hexadecimal digits"), data_at);
    }
  } else {
    in.need('{');
    do {
      size_t at = in.position();
      values.push_back(in.integer());
      if (!dtype.is_int() || !fits(dtype, values.back())) {
        in.fail("this element doesn't fit the tensor's type", to_text(dtype), at);
      }
    } while (in.take(','));
    in.need('}');
    if (static_cast<int64_t>(values.size()) * dtype.bytes() != *bytes) {
      in.fail("the elements don't fit the shape", cat(*bytes / dtype.bytes(), " elements"),
              data_at);
    }
  }
  // Allocate only now: the text is known to be as large as the tensor.
  Tensor t = Tensor::empty(shape, dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    store_int(t.data(), dtype, static_cast<int64_t>(i), values[i]);
  }
  std::copy(data.begin(), data.end(), t.data_as<char>());
  return Any(t);
}

Any parse_float(LineCursor& in) {
  if (in.take_word("bits")) {
    uint64_t bits = in.unsigned_integer();
    double v;
    std::memcpy(&v, &bits, sizeof v);
    return Any(v);
  }
  size_t at = in.position();
  std::string_view text = in.balanced_until(" \t;,)");
  double v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    in.fail("not a number", "a float", at);
  }
  return Any(v);
}

}  // namespace

std::string dtype_operand_text(DataType t) {
  return to_text(t);
}

DataType parse_dtype_operand(LineCursor& in) {
  size_t at = in.position();
  auto t = parse_dtype(in.name());
  if (!t) in.fail("not an element type", "a dtype such as f32, i64 or bool", at);
  return *t;
}

DLDevice parse_device_operand(LineCursor& in) {
  size_t at = in.position();
  std::string_view name = in.name();
  in.need(':');
  uint64_t id = in.unsigned_integer();
  const auto device = parse_device(cat(name, ':', id));
  if (!device || id > 0xffffff) in.fail("not a device", "a device such as cpu:0", at);
  return *device;
}

std::string hex_bytes(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

std::string late_tensor_text(const LateTensor& late) {
  std::vector<SignatureDim> dims;
  for (int64_t d : late.shape) dims.push_back(SignatureDim::constant(d));
  return cat("late ", SignatureType::tensor(late.dtype, dims),
             late.alignment == LateTensor().alignment ? "" : cat(" align ", late.alignment));
}

LateTensor parse_late_tensor(LineCursor& in) {
  const TensorType type = parse_tensor_type(in);
  LateTensor late{type.dtype, type.shape};
  if (in.take_word("align")) {
    const size_t at = in.position();
    const uint64_t alignment = in.unsigned_integer();
    if (alignment > kMaxStorageAlignment) {
      in.fail("the alignment is too large", cat("at most ", kMaxStorageAlignment), at);
    }
    late.alignment = static_cast<uint32_t>(alignment);
  }
  return late;
}

std::string constant_text(const AnyView& value, int64_t max_elements) {
  switch (value.type_index) {
    case TypeIndex::None:
      return "none";
    case TypeIndex::Int:
      return cat(value.v.i);
    case TypeIndex::Bool:
      return value.v.i ? "true" : "false";
    case TypeIndex::Float: {
      if (std::isnan(value.v.f)) return cat("float bits ", hex(value.v.bits));
      return cat("float ", value.v.f);
    }
    case TypeIndex::DataType:
      return "dtype " + to_text(value.as<DataType>());
    case TypeIndex::Device:
      return "device " + tenon::to_text(value.as<DLDevice>());
    case TypeIndex::Shape:
      return "shape" + to_text(value.as<Shape>());
    case TypeIndex::Tensor:
      return tensor_text(value.as<Tensor>(), max_elements);
    default:
      break;
  }
  if (String::accepts(value)) return quoted(value.as<std::string_view>());
  throw Error(ErrorKind::Internal,
              cat("a ", type_name(value.type_index), " can't be a constant of a file"));
}

Any parse_constant(LineCursor& in) {
  char c = in.peek();
  if (c == '"') return Any(in.string());
  if (c == '-' || (c >= '0' && c <= '9')) return Any(in.integer());
  if (in.take_word("none")) return Any();
  if (in.take_word("true")) return Any(true);
  if (in.take_word("false")) return Any(false);
  if (in.take_word("float")) return parse_float(in);
  if (in.take_word("dtype")) return Any(parse_dtype_operand(in));
  if (in.take_word("device")) return Any(parse_device_operand(in));
  if (in.take_word("shape")) {
    in.need('[');
    std::vector<int64_t> dims;
    if (!in.take(']')) {
      do dims.push_back(in.integer());
      while (in.take(','));
      in.need(']');
    }
    return Any(Shape(dims));
  }
  size_t at = in.position();
  if (in.take_word("tensor")) {
    in.set_position(at);
    return parse_tensor(in);
  }
  in.fail("not a constant", "a number, string, float, shape, tensor, dtype or device");
}

}  // namespace tenon::vm

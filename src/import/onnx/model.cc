#include "import/onnx/model.h"

namespace tenon::onnx {

namespace {

struct TypeRow {
  const char* onnx_name;  // of types that are not implemented
  DataType dtype = {};
};

// By TensorProto.DataType.
constexpr TypeRow kTypes[] = {
    {"undefined"},    {"", f32},      {"", u8},
    {"", i8},         {"", u16},      {"", i16},
    {"", i32},        {"", i64},      {"", string_elements},
    {"", boolean},    {"", f16},      {"", f64},
    {"", u32},        {"", u64},      {"", c64},
    {"", c128},       {"", bf16},     {"", f8e4m3fn},
    {"", f8e4m3fnuz}, {"", f8e5m2},   {"", f8e5m2fnuz},
    {"", u4},         {"", i4},       {"", f4e2m1fn},
    {"", f8e8m0fnu},  {"", u2},       {"", i2},
    {"float6e2m3"},   {"float6e3m2"},
};
constexpr int32_t kTypeCount = static_cast<int32_t>(std::size(kTypes));

}  // namespace

std::set<std::string> Graph::initializer_names() const {
  std::set<std::string> out;
  for (const SparseData& t : sparse_initializers) out.insert(t.values.name);
  for (const TensorData& t : initializers) out.insert(t.name);
  return out;
}

std::string data_type_name(int32_t type) {
  if (type < 0 || type >= kTypeCount) return cat("type ", type);
  const TypeRow& row = kTypes[type];
  return row.dtype.is_void() ? row.onnx_name : to_text(row.dtype);
}

std::optional<DataType> dtype_of(int32_t type) {
  if (type < 0 || type >= kTypeCount || kTypes[type].dtype.is_void()) return std::nullopt;
  return kTypes[type].dtype;
}

int32_t data_type_of(DataType dtype) {
  for (int32_t i = 0; i < kTypeCount; ++i) {
    if (!kTypes[i].dtype.is_void() && kTypes[i].dtype == dtype) return i;
  }
  return 0;
}

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute) return &a;
  }
  return nullptr;
}

}  // namespace tenon::onnx

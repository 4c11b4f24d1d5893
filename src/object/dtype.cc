#include "object/dtype.h"

#include <charconv>

#include "support/error.h"

namespace tenon {

namespace {
struct Family {
  std::string_view name, short_name;
  DLDataTypeCode code;
  int bits = 0;  // 0: they follow the name
};
constexpr Family kFamilies[] = {
    {"float", "f", kDLFloat},
    {"int", "i", kDLInt},
    {"uint", "u", kDLUInt},
    {"bfloat", "bf", kDLBfloat},
    {"complex", "c", kDLComplex},
    {"float8_e4m3fn", "f8e4m3fn", kDLFloat8_e4m3fn, 8},
    {"float8_e4m3fnuz", "f8e4m3fnuz", kDLFloat8_e4m3fnuz, 8},
    {"float8_e5m2", "f8e5m2", kDLFloat8_e5m2, 8},
    {"float8_e5m2fnuz", "f8e5m2fnuz", kDLFloat8_e5m2fnuz, 8},
    {"float8_e8m0fnu", "f8e8m0fnu", kDLFloat8_e8m0fnu, 8},
    {"float4_e2m1fn", "f4e2m1fn", kDLFloat4_e2m1fn, 4},
};

bool read_number(std::string_view& text, int& out) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (status != std::errc() || end == text.data()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool valid_width(DLDataTypeCode code, int bits) {
  switch (code) {
    case kDLFloat:
      return bits == 16 || bits == 32 || bits == 64;
    case kDLBfloat:
      return bits == 16;
    case kDLComplex:
      return bits == 64 || bits == 128;
    default:
      return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 32 ||
             bits == 64;
  }
}
}  // namespace

std::string to_text(DataType t) {
  std::string out;
  if (t.is_void()) return "void";
  if (t == boolean) return "bool";
  if (t == string_elements) return std::string(kStringElements);
  if (t.code == kDLBool) {
    out = cat("bool", t.bits);
  } else {
    out = cat("type", t.code, '_', t.bits);
    for (const auto& f : kFamilies) {
      if (f.code == t.code && f.bits == 0) out = cat(f.short_name, t.bits);
      if (f.code == t.code && f.bits == t.bits) out = f.short_name;
    }
  }
  if (t.lanes != 1) out += cat('x', t.lanes);
  return out;
}

[[gnu::cold]] std::string tensor_type_text(std::string_view sizes, DataType dtype) {
  return cat("tensor[", sizes, sizes.empty() ? "" : "; ", to_text(dtype), "]");
}

std::optional<DataType> parse_dtype(std::string_view text) {
  if (text == "bool") return boolean;
  if (text == "void") return DataType();
  if (text == kStringElements) return string_elements;
  const Family* family = nullptr;
  size_t length = 0;
  for (const auto& f : kFamilies) {
    for (auto name : {f.name, f.short_name}) {
      if (text.starts_with(name) && name.size() > length) {
        family = &f;
        length = name.size();
      }
    }
  }
  if (!family) return std::nullopt;
  text.remove_prefix(length);
  int bits = family->bits, lanes = 1;
  if (bits == 0 && (!read_number(text, bits) || !valid_width(family->code, bits)))
    return std::nullopt;
  if (!text.empty()) {
    if (text[0] != 'x') return std::nullopt;
    text.remove_prefix(1);
    if (!read_number(text, lanes) || lanes < 2 || lanes > 0xffff || !text.empty())
      return std::nullopt;
  }
  return DataType(family->code, bits, lanes);
}

}  // namespace tenon

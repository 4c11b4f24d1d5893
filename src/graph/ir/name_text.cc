#include "graph/ir/name_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "object/narrow_float.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon::graph {

bool is_bare_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string name_text(std::string_view name) {
  return is_bare_name(name) ? std::string(name) : quoted(name);
}

bool is_reserved(std::string_view word) {
  static constexpr std::string_view words[] = {
      "array", "at",     "attrs",      "check", "device", "dim",    "else",  "false",
      "fn",    "from",   "if",         "inf",   "kernel", "loop",   "match", "match_elements",
      "nan",   "opaque", "packed",     "rank",  "shape",  "tensor", "true",  "type",
      "while", "as",     "match_shape"};
  return std::find(std::begin(words), std::end(words), word) != std::end(words) ||
         find_dim_function(word) || parse_dtype(word).has_value();
}

bool may_name_type(std::string_view word) {
  if (word == "rank" || word == "device") return true;  // special only where no type can stand
  return word != "string" && word != "any" && !is_reserved(word);
}

namespace {

std::string symbol_text(std::string_view name) {
  bool bare = is_bare_name(name) && !(name[0] >= '0' && name[0] <= '9') && !is_reserved(name);
  return bare ? std::string(name) : quoted(name);
}

// src/loop limits the depth.
void append(const DimNode& n, std::string* out) {
  switch (n.kind) {
    case DimKind::kConst:
      *out += cat(n.value);
      return;
    case DimKind::kSymbol:
      *out += symbol_text(n.name);
      return;
    case DimKind::kAdd:
      for (size_t i = 0; i < n.args.size(); ++i) {
        const DimNode& t = *n.args[i];
        bool negative = t.kind == DimKind::kMul && t.args[0]->kind == DimKind::kConst &&
                        t.args[0]->value < 0 && t.args[0]->value != INT64_MIN;
        if (i && negative) {
          *out += " - ";
          if (t.args[0]->value != -1) *out += cat(-t.args[0]->value, "*");
          for (size_t k = 1; k < t.args.size(); ++k) {
            if (k > 1) *out += "*";
            append(*t.args[k], out);
          }
          continue;
        }
        bool less = i && t.kind == DimKind::kConst && t.value < 0 && t.value != INT64_MIN;
        if (i) *out += less ? " - " : " + ";
        if (less) {
          *out += cat(-t.value);
        } else {
          append(t, out);
        }
      }
      return;
    case DimKind::kMul:
      for (size_t i = 0; i < n.args.size(); ++i) {
        if (i) *out += "*";
        bool sum = n.args[i]->kind == DimKind::kAdd;
        if (sum) *out += "(";
        append(*n.args[i], out);
        if (sum) *out += ")";
      }
      return;
    default:
      *out += find_dim_function(n.kind)->name;
      for (size_t i = 0; i < n.args.size(); ++i) {
        *out += i ? ", " : "(";
        append(*n.args[i], out);
      }
      *out += ")";
  }
}

}  // namespace

std::string dim_text(const Dim& d) {
  std::string out;
  append(d.node(), &out);
  return out;
}

// ---- floats ----

namespace {

// Makes sure that a float has a point or an exponent, since "1" reads as an integer.
std::string with_point(std::string text) {
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string nan_text(uint64_t bits, uint64_t plain) {
  return bits == plain ? "nan" : cat("nan(", hex(bits), ")");
}

constexpr uint64_t kPlainNan64 = 0x7ff8000000000000;

template <class T>
T read(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

}  // namespace

void suggest(Error* error, std::string_view name, const std::vector<std::string>& candidates,
             std::string_view sign) {
  if (name.size() < 2) return;  // every other name of one letter is close to it
  const std::string near = nearest(name, candidates);
  if (!near.empty()) error->help(cat("did you mean ", sign, name_text(near), "?"));
}

void suggest_word(Error* error, std::string_view name, std::span<const OtherWord> others,
                  const std::vector<std::string>& candidates) {
  const auto other = std::ranges::find(others, name, &OtherWord::elsewhere);
  if (other == others.end()) return suggest(error, name, candidates);
  error->help(cat("did you mean ", other->here, "?"));
}

std::string float_text(double value) {
  if (std::isnan(value)) return nan_text(std::bit_cast<uint64_t>(value), kPlainNan64);
  return with_point(cat(value));
}

std::string element_text(DataType dtype, const void* e) {
  if (dtype == boolean) {
    uint8_t b = read<uint8_t>(e);
    return b > 1 ? cat(int{b}) : b ? "true" : "false";
  }
  if (dtype.is_int() && dtype.bits <= 8) return cat(wrap_to(dtype, read<uint8_t>(e)));
  if (dtype == i16) return cat(read<int16_t>(e));
  if (dtype == i32) return cat(read<int32_t>(e));
  if (dtype == i64) return cat(read<int64_t>(e));
  if (dtype == u16) return cat(read<uint16_t>(e));
  if (dtype == u32) return cat(read<uint32_t>(e));
  if (dtype == u64) return cat(read<uint64_t>(e));
  if (dtype == f64) return float_text(read<double>(e));
  if (dtype == f32) {
    float f = read<float>(e);
    return std::isnan(f) ? nan_text(std::bit_cast<uint32_t>(f), 0x7fc00000) : with_point(cat(f));
  }
  if (dtype.is_narrow_float()) {
    uint16_t bits = 0;
    std::memcpy(&bits, e, static_cast<size_t>(dtype.bytes()));
    const auto v = static_cast<float>(narrow_value(dtype, bits));
    return std::isnan(v) ? nan_text(bits, narrow_bits(dtype, NAN)) : with_point(cat(v));
  }
  if (const DataType part = part_of(dtype); part != dtype) {
    const char* real = static_cast<const char*>(e);
    return cat("(", element_text(part, real), ", ", element_text(part, real + part.bytes()), ")");
  }
  // Other element types: their bytes.
  std::string out = "0x";
  for (int64_t i = dtype.bytes(); i-- > 0;) {
    static const char* digits = "0123456789abcdef";
    uint8_t b = static_cast<const uint8_t*>(e)[i];
    out += digits[b >> 4];
    out += digits[b & 15];
  }
  return out;
}

}  // namespace tenon::graph

// Parses constants and attributes of IR text.

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "graph/ir/expected_text.h"
#include "graph/ir/name_text.h"
#include "graph/ir/parser.h"
#include "graph/ir/referenced_file.h"
#include "loop/scalar.h"
#include "object/string_tensor.h"
#include "support/poll.h"
#include "support/utf8.h"

namespace tenon::graph {

namespace {

// The number of an integer's token: 31, 0x1f. Nothing if it doesn't fit.
template <class T>
std::optional<T> number_of(const Token& token, bool negative = false) {
  const bool is_hex = token.kind == TokenKind::kHex;
  const std::string digits = cat(negative ? "-" : "", token.text.substr(is_hex ? 2 : 0));
  T v = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, ec] = std::from_chars(digits.data(), last, v, is_hex ? 16 : 10);
  return ec == std::errc() && end == last ? std::optional(v) : std::nullopt;
}

bool is_integer(const Token& token) {
  return token.kind == TokenKind::kInt || token.kind == TokenKind::kHex;
}

}  // namespace

int64_t Parser::int_value(const char* what) {
  const Token first = peek();
  const bool negative = accept("-");
  if (!is_integer(peek())) fail(cat(what, " is missing"), "an integer");
  const Token t = take();
  const auto v = number_of<int64_t>(t, negative);
  if (!v)
    fail_at(first, cat(negative ? "-" : "", t.text, " is too large"), "an integer of 64 bits");
  return *v;
}

// A float. A NaN that is given by its bits in `dtype` becomes the double with these bits (f64) or,
// for narrower types, a NaN that carries them in its lowest bits, from which `element` extracts
// them.
double Parser::float_value(DataType dtype) {
  Token first = peek();
  bool negative = accept("-");
  const Token t = take();
  double v = 0;
  if (t.word("inf")) {
    v = std::numeric_limits<double>::infinity();
  } else if (t.word("nan")) {
    if (negative) fail_at(first, "a NaN's sign is part of its bits", "nan(0x...)");
    if (!accept("(")) return std::numeric_limits<double>::quiet_NaN();
    const bool is_hex = peek().kind == TokenKind::kHex;
    const auto bits = is_hex ? number_of<uint64_t>(peek()) : std::nullopt;
    if (!bits) fail("the bits of a NaN are missing", "as in nan(0x7fc00001)");
    take();
    expect(")", "after the bits of a NaN");
    double d = std::bit_cast<double>(*bits);
    if (dtype != f64) {
      if (dtype.bits < 64 && *bits >> dtype.bits) fail_at(first, "these bits don't fit the type");
      d = std::bit_cast<double>(0x7ff4000000000000 | *bits);
    }
    if (!std::isnan(d)) fail_at(first, "these bits are not a NaN");
    return d;
  } else if (t.kind == TokenKind::kInt || t.kind == TokenKind::kFloat) {
    auto [end, ec] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), v);
    if (ec == std::errc::result_out_of_range) {
      // A number that is too small becomes 0 or a denormal; one that is too large is an error.
      v = std::strtod(std::string(t.text).c_str(), nullptr);
      if (std::isinf(v)) fail_at(t, cat(t.text, " is too large for a float"), "inf");
    }
  } else {
    fail_at(first, "a number is missing", "such as 0.5, -2, inf or nan");
  }
  if (dtype != f64 && std::isfinite(v) && v != 0) {
    // Narrower types are parsed as a float, to round only once; their text is shortest for a float.
    float f = 0;
    auto [end, ec] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), f);
    if (ec == std::errc()) v = f;
  }
  return negative ? -v : v;
}

void Parser::element(DataType dtype, void* out) {
  if (const DataType part = part_of(dtype); part != dtype) {
    expect("(", "before the real part of a complex number");
    element(part, out);
    expect(",", "before the imaginary part");
    element(part, static_cast<char*>(out) + part.bytes());
    expect(")", "after a complex number");
    return;
  }
  if (dtype.is_float()) {
    Token first = peek();
    double v = float_value(dtype);
    if (std::isnan(v)) {
      uint64_t bits = std::bit_cast<uint64_t>(v);
      bool plain = bits == 0x7ff8000000000000;
      if (dtype == f32) bits = plain ? 0x7fc00000 : bits & 0xffffffff;
      if (dtype.is_narrow_float())
        bits = plain ? narrow_bits(dtype, v) : bits & ((uint64_t{1} << dtype.bits) - 1);
      std::memcpy(out, &bits, static_cast<size_t>(dtype.bytes()));  // little-endian
      double back = loop::as_float(loop::scalar_load(dtype, out));
      if (!std::isnan(back)) fail_at(first, cat("these bits are not a NaN of ", to_text(dtype)));
      return;
    }
    if (dtype == f32) {
      float f = static_cast<float>(v);
      std::memcpy(out, &f, sizeof f);
      return;
    }
    loop::scalar_store(dtype, out, loop::float_bits(loop::round_to(dtype, v)));
    return;
  }
  if (dtype == boolean) {
    if (accept_word("true") || accept_word("false")) {
      *static_cast<uint8_t*>(out) = tokens_[at_ - 1].text == "true";
      return;
    }
  }
  if (!dtype.is_int() && dtype != boolean) {
    fail(cat("elements of ", to_text(dtype), " can't be written as text"));
  }
  Token first = peek();
  if (dtype == u64 && is_integer(first)) {
    const auto v = number_of<uint64_t>(first);
    if (!v) fail("this number doesn't fit u64", range_text(u64));
    take();
    std::memcpy(out, &*v, sizeof *v);
    return;
  }
  int64_t v = int_value("an element");
  bool fits =
      dtype == boolean ? v >= 0 && v < 256 : wrap_to(dtype, v) == v && !(dtype == u64 && v < 0);
  if (!fits) fail_at(first, cat(v, " doesn't fit ", to_text(dtype)), range_text(dtype));
  if (dtype == boolean) {
    *static_cast<uint8_t*>(out) = static_cast<uint8_t>(v);
  } else {
    loop::scalar_store(dtype, out, v);
  }
}

// ---- constants ----

bool Parser::starts_constant() const {
  const Token& t = peek();
  switch (t.kind) {
    case TokenKind::kInt:
    case TokenKind::kHex:
    case TokenKind::kFloat:
    case TokenKind::kString:
      return true;
    case TokenKind::kSign:
      return t.text == "-";
    case TokenKind::kWord:
      return t.text == "true" || t.text == "false" || t.text == "inf" || t.text == "nan" ||
             t.text == "tensor" || (t.text == "shape" && peek(1).is("[")) ||
             (scalar_element_type(t) && peek(1).is("("));
    default:
      return false;
  }
}

Any Parser::whole_constant() {
  return whole("a constant", [&] {
    const Operand constant = constant_();
    if (!constant) fail("a constant is missing", "a number, tensor[...]{...} or shape[...]");
    return constant.as<Constant>()->value;
  });
}

Operand Parser::constant_(const TypeRef& expected) {
  if (!starts_constant()) return nullptr;
  const Token t = peek();
  if (t.kind == TokenKind::kString) {
    take();
    return constant_string(t.text);
  }
  if (accept_word("true")) return constant_bool(true);
  if (accept_word("false")) return constant_bool(false);
  if (accept_word("tensor")) return tensor_constant();
  if (accept_word("shape")) {
    std::vector<int64_t> dims;
    expect("[", "after 'shape'");
    list("]", "after sizes", [&] {
      Token at = peek();
      dims.push_back(int_value("a size"));
      if (dims.back() < 0) fail_at(at, "a size is not negative");
    });
    if (dims.size() > static_cast<size_t>(kMaxRank)) {
      fail_at(t, "this shape has too many sizes", cat("at most ", kMaxRank));
    }
    return constant_shape(Shape(dims));
  }
  if (const auto stated = scalar_element_type(t)) {
    take();
    take();
    const Operand number = scalar_constant(*stated);
    expect(")", "after a number");
    return number;
  }
  // A number takes the type that is expected, unless it has a fraction and that has none.
  const bool whole = is_integer(t.is("-") ? peek(1) : t);
  const auto* scalar = expected ? type_as<ScalarType>(expected) : nullptr;
  const bool takes = scalar && (scalar->dtype.is_float() || (whole && scalar->dtype.is_int()));
  return scalar_constant(takes ? scalar->dtype : whole ? i64 : f32);
}

Operand Parser::scalar_constant(DataType dtype) {
  const Token first = peek();
  if (!dtype.is_float()) {
    int64_t bits = 0;
    element(dtype, &bits);
    bits = loop::scalar_load(dtype, &bits);
    return dtype.is_bool() ? constant_bool(bits != 0) : constant_int(bits, dtype);
  }
  const double v = float_value(first.word("nan") ? f64 : dtype);
  if (std::isfinite(v) && !std::isfinite(loop::round_to(dtype, v))) {
    fail_at(first, cat("this number is too large for ", to_text(dtype)), cat("f64(", v, ")"));
  }
  return constant_float(dtype, v);
}

// tensor[2, 2; f32]{1, 2, 3, 4} as "w"    tensor[64; f32] from "w"
Operand Parser::tensor_constant() {
  Token first = peek();
  auto type = tensor_type_();
  std::vector<int64_t> shape;
  bool constant_dims = type->dims_known && type->device == 0;
  for (const Dim& d : type->dims) {
    constant_dims &= d.is_const() && *d.as_const() >= 0;
    if (constant_dims) shape.push_back(*d.as_const());
  }
  if (!constant_dims) {
    fail_at(first, cat("a constant can't be ", to_text(TypeRef(type))), "numbers as dimensions");
  }
  Tensor value;
  std::string name;
  if (accept_word("from")) {
    Token key = peek();
    name = expect_kind(TokenKind::kString, "a key of the weight file");
    value = weights(key).find(name);
    if (!value) {
      throw Error(ErrorKind::Usage, source_.span(key.begin),
                  cat("the weight file has no ", quoted(name)))
          .where(weights_path_)
          .help("give the weight file that was saved with this program");
    }
    bool same = value.dtype() == type->dtype &&
                std::equal(shape.begin(), shape.end(), value.shape().begin(), value.shape().end());
    if (!same) {
      throw Error(ErrorKind::Usage, source_.span(key.begin),
                  cat("the weight file's ", quoted(name), " doesn't fit the type in the text"))
          .found(tensor_type_text(value.dtype(), value.shape()), weights_path_)
          .expected(tensor_type_text(type->dtype, shape));
    }
  } else {
    expect("{", "before a tensor's elements");
    if (peek().is("...")) {
      take();
      take();
      std::string which = accept_word("as") ? cat(" ", quoted(peek().text)) : "";
      fail_at(first, cat("the elements of this constant", which, " are left out (`{...}`)"),
              "a text that was written with its weight file, or the elements");
    }
    value = listed_elements(first, type->dtype, shape);
  }
  if (accept_word("as")) name = expect_kind(TokenKind::kString, "a weight's name");
  return constant(value.as_read_only(), name);
}

// The elements of the constant that begins at `first`, up to its brace.
Tensor Parser::listed_elements(const Token& first, DataType dtype, std::span<const int64_t> shape) {
  // Each element is at least one token, so sizes beyond the text are refused before allocation.
  if (!byte_count(shape, dtype) || *element_count(shape) > static_cast<int64_t>(tokens_.size())) {
    fail_at(first, "this constant has fewer elements than its type says");
  }
  const int64_t wanted = *element_count(shape), size = dtype.bytes();
  const bool is_text = dtype == string_elements;
  std::optional<StringTensorBuilder> strings;
  Tensor numbers;
  if (is_text) {
    strings.emplace(shape);
  } else {
    numbers = Tensor::empty(shape, dtype);
  }
  int64_t count = 0;
  Ticker ticker;
  list("}", "after a tensor's elements", [&] {
    if (count >= wanted) fail("this constant has more elements than its type says", cat(wanted));
    ticker.tick();
    if (is_text) {
      const Token at = peek();
      const std::string_view text = expect_kind(TokenKind::kString, "a string in quotes");
      if (!is_utf8(text)) fail_at(at, "this string is not valid UTF-8");
      strings->append(text);
      ++count;
    } else {
      element(dtype, numbers.data_as<char>() + size * count++);
    }
  });
  if (count != wanted) {
    fail_at(first, "this constant has fewer elements than its type says",
            cat(wanted, ", not ", count));
  }
  return is_text ? strings->finish() : numbers;
}

const WeightFile& Parser::weights(const Token& key) {
  if (weights_) return *weights_;
  if (weights_path_.empty()) {
    fail_at(key, "this text names no weight file", "`weights \"FILE\"` before the first function");
  }
  const size_t slash = source_.name().rfind('/');
  const std::string folder = slash == std::string::npos ? "" : source_.name().substr(0, slash + 1);
  if (std::exchange(weights_lost_, true)) throw Lost{};  // each constant would repeat the error
  try {
    weights_.emplace(referenced_file(folder, weights_path_, "the weight file", "text"));
    weights_lost_ = false;
  } catch (Error& e) {
    e.at(source_.span(key.begin));
    throw;
  }
  return *weights_;
}

// ---- attributes ----

Any Parser::any_value() {
  Nest nest(this, &value_depth_);
  const Token t = peek();
  if (accept("(")) {
    expect(")", "after '(': only () can start like this");
    return Any();
  }
  if (accept("[")) {
    Array<Any> items;
    list("]", "after values", [&] { items.push_back(any_value()); });
    return Any(items);
  }
  if (t.kind == TokenKind::kString) return Any(String(take().text));
  if (accept_word("true")) return Any(true);
  if (accept_word("false")) return Any(false);
  if (t.word("dim") && peek(1).is("(")) {
    take();
    take();
    Dim d = dim();
    expect(")", "after a size");
    return Any(d);
  }
  if (t.kind == TokenKind::kWord && t.text != "inf" && t.text != "nan") {
    if (auto d = element_type(t)) {
      take();
      return Any(*d);
    }
    fail("an attribute's value is missing", "a number, string, list, true, false or dim(n)");
  }
  const Token& number = t.is("-") ? peek(1) : t;
  if (is_integer(number)) return Any(int_value("a number"));
  return Any(float_value(f64));
}

Any Parser::attr_value(AttrKind kind) {
  if (kind == AttrKind::kDim && !peek().is("(")) return Any(dim());
  if (kind == AttrKind::kDims && peek().is("[")) {
    return Any(Array<Dim>(dims("before sizes")));
  }
  if (kind == AttrKind::kDType && peek().kind == TokenKind::kWord) return Any(dtype());
  return any_value();
}

Any Parser::whole_attribute(AttrKind kind) {
  return whole("a value", [&] { return attr_value(kind); });
}

Any parse_attribute(AttrKind kind, std::string_view text) {
  return Parser(text, "attribute").whole_attribute(kind);
}

// `name=value, ...` up to and including `close`.
Attrs Parser::attr_list(std::string_view close, const Operator* op) {
  Attrs out;
  list(close, "after attributes", [&] {
    Token name = peek();
    expect_word("the name of an attribute");
    expect("=", "after an attribute's name");
    if (out.contains(name.text)) fail_at(name, cat("the attribute ", name.text, " is there twice"));
    const AttrSpec* spec = nullptr;
    if (op) {
      for (const AttrSpec& s : op->attrs) {
        if (name.text == s.name) spec = &s;
      }
      if (!spec) throw unknown_attribute(*op, name.text).at(source_.span(name.begin));
    }
    out.set(name.text, spec ? attr_value(spec->kind) : any_value());
  });
  return out;
}

}  // namespace tenon::graph

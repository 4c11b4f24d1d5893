#include "vm/isa/signature.h"

#include <algorithm>
#include <charconv>

#include "object/tensor.h"
#include "support/error.h"
#include "support/failures.h"
#include "support/text.h"
#include "vm/isa/limits.h"

namespace tenon::vm {
namespace {

using Kind = SignatureType::Kind;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

// Of tensors.
std::optional<DataType> element_type(std::string_view name) {
  const std::optional<DataType> dtype = parse_dtype(name);
  const bool known = dtype && (is_tensor_dtype(*dtype) || *dtype == string_elements);
  return known ? dtype : std::nullopt;
}

// Errors have them as literals, which take less code than numbers.
static_assert(kMaxTypeBytes == 1048576 && kMaxRank == 32 && kMaxTypeDepth == 128 &&
              kMostTypeParts == 65536);

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  SignatureType whole_type() {
    begin();
    SignatureType out = type(0);
    end();
    return out;
  }
  AdtSignature whole_adt() {
    begin();
    AdtSignature out = adt();
    end();
    return out;
  }

 private:
  void begin() {
    if (text_.size() > kMaxTypeBytes) fail("at most 1048576 bytes");
  }
  void end() {
    skip();
    if (at_ != text_.size()) fail("the end of the type");
  }
  [[noreturn]] void fail(std::string_view wanted) {
    std::string found = at_ < text_.size() ? quoted(text_.substr(at_, 12)) : "the end";
    throw Error(ErrorKind::Usage, cat("not a type: ", quoted(text_.substr(0, 200))))
        .found(found, cat("column ", at_ + 1))
        .expected(wanted);
  }
  void skip() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    const char quoted[] = {'\'', c, '\''};
    if (!take(c)) fail({quoted, sizeof quoted});
  }
  std::string_view name() {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && is_name_byte(text_[at_])) ++at_;
    if (at_ == begin) fail("a type");
    return text_.substr(begin, at_ - begin);
  }

  // The text between the quotes that begin here, with its escapes.
  std::string_view quoted_token() {
    const size_t begin = at_ + 1;
    do at_ += at_ < text_.size() && text_[at_] == '\\' ? 2 : 1;
    while (at_ < text_.size() && text_[at_] != '"');
    if (at_ >= text_.size()) {
      at_ = text_.size();
      fail("a closing quote");
    }
    const std::string_view token = text_.substr(begin, at_++ - begin);
    if (printable(token) != token) fail("a name without control characters");
    return token;
  }
  // A dimension's text extends to a comma, semicolon or bracket outside of parentheses and quotes.
  std::string_view dim_token() {
    skip();
    size_t begin = at_;
    for (int depth = 0; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"') {
        quoted_token();
        --at_;
        continue;
      }
      if (c == '(') ++depth;
      if (c == ')' && --depth < 0) break;
      if (depth == 0 && (c == ',' || c == ';' || c == ']' || c == '[')) break;
    }
    std::string_view token = trim(text_.substr(begin, at_ - begin));
    if (token.empty()) fail("a dimension");
    if (printable(token) != token) fail("a dimension without control characters");
    return token;
  }
  void dims(SignatureType& t, char end) {
    skip();
    t.rank = 0;
    t.dims_known = true;
    if (at_ < text_.size() && text_[at_] == end) return;
    do {
      std::string_view token = dim_token();
      if (t.dims.empty() && t.rank == 0 && token == "*") {
        t.rank = -1;
        t.dims_known = false;
        return;
      }
      if (t.dims.empty() && t.rank == 0 && token.starts_with("rank=")) {
        token.remove_prefix(5);
        auto [end_of, error] = std::from_chars(token.data(), token.data() + token.size(), t.rank);
        if (error != std::errc() || end_of != token.data() + token.size() || t.rank < 0 ||
            t.rank > kMaxRank) {
          fail("a rank of at most 32");
        }
        t.dims_known = false;
        return;
      }
      if (t.dims.size() == kMaxRank) fail("at most 32 dimensions");
      int64_t value = 0;
      auto [end_of, error] = std::from_chars(token.data(), token.data() + token.size(), value);
      bool constant = error == std::errc() && end_of == token.data() + token.size() && value >= 0;
      t.dims.push_back(constant ? SignatureDim::constant(value)
                                : SignatureDim::symbolic(std::string(token)));
    } while (take(','));
    t.rank = static_cast<int64_t>(t.dims.size());
  }
  // "tensor[f32]" has no dimensions; returns whether this form follows the bracket.
  bool scalar_tensor(SignatureType& t) {
    size_t end = text_.find_first_of("];", at_);
    if (end == std::string_view::npos || text_[end] != ']' ||
        !element_type(trim(text_.substr(at_, end - at_)))) {
      return false;
    }
    t.rank = 0;
    t.dims_known = true;
    return true;
  }
  void parts(SignatureType& t, char end, int depth) {
    skip();
    if (take(end)) return;
    while (true) {
      t.parts.push_back(type(depth + 1));
      if (!take(',')) return need(end);
      if (t.kind == Kind::Tuple && t.parts.size() == 1 && take(end)) return;  // (x,)
    }
  }

  SignatureType type(int depth) {
    if (depth > static_cast<int>(kMaxTypeDepth)) fail("nesting of at most 128");
    if (++parts_ > kMostTypeParts) fail("at most 65536 parts");
    SignatureType t;
    if (take('(')) {
      t.kind = Kind::Tuple;
      parts(t, ')', depth);
      return t;
    }
    std::string_view word = name();
    if (word == "any") return t;
    if (word == "tensor") {
      t.kind = Kind::Tensor;
      need('[');
      if (!scalar_tensor(t)) {
        dims(t, ';');
        need(';');
      }
      auto dtype = element_type(name());
      if (!dtype) fail("an element type");
      t.dtype = *dtype;
      need(']');
    } else if (word == "shape") {
      t.kind = Kind::Shape;
      need('[');
      dims(t, ']');
      need(']');
    } else if (word == "fn") {
      t.kind = Kind::Function;
      need('(');
      parts(t, ')', depth);
      need('-');
      need('>');
      t.parts.push_back(type(depth + 1));
    } else if (word == "array") {
      t.kind = Kind::Array;
      need('[');
      t.parts.push_back(type(depth + 1));
      need(']');
    } else if (word == "opaque") {
      t.kind = Kind::Opaque;
      need('[');
      skip();
      if (at_ == text_.size() || text_[at_] != '"') fail("a name in quotes");
      t.name = quoted_token();
      need(']');
    } else if (word == kString) {
      t.kind = Kind::Opaque;
      t.name = word;
    } else if (auto dtype = element_type(word); dtype && is_scalar_dtype(*dtype)) {
      t.kind = Kind::Scalar;
      t.dtype = *dtype;
    } else {
      t.kind = Kind::Adt;
      t.name = word;
      if (take('[')) parts(t, ']', depth);
    }
    return t;
  }

  AdtSignature adt() {
    AdtSignature out;
    out.name = name();
    if (take('[')) {
      do out.type_params.emplace_back(name());
      while (take(','));
      need(']');
    }
    need('{');
    do {
      SignatureType fields;
      const std::string_view constructor = name();
      if (take('(')) parts(fields, ')', 0);
      out.constructors.push_back({std::string(constructor), std::move(fields.parts)});
    } while (take(','));
    need('}');
    return out;
  }

  std::string_view text_;
  size_t at_ = 0, parts_ = 0;
};

void append_list(std::string& out, const std::vector<SignatureType>& types, size_t count) {
  for (size_t i = 0; i < count; ++i) out += (i ? ", " : "") + to_text(types[i]);
}

void append_dims(std::string& out, const SignatureType& t) {
  if (!t.dims_known) {
    out += t.rank < 0 ? "*" : cat("rank=", t.rank);
    return;
  }
  for (size_t i = 0; i < t.dims.size(); ++i) out += (i ? ", " : "") + t.dims[i].text;
}

}  // namespace

SignatureDim SignatureDim::constant(int64_t value) {
  return {cat(value), value};
}
SignatureDim SignatureDim::symbolic(std::string text) {
  return {std::move(text), -1};
}

SignatureType SignatureType::tensor(DataType dtype, std::vector<SignatureDim> dims) {
  SignatureType t;
  t.kind = Kind::Tensor;
  t.dtype = dtype;
  t.rank = static_cast<int64_t>(dims.size());
  t.dims_known = true;
  t.dims = std::move(dims);
  return t;
}

SignatureType SignatureType::scalar(DataType dtype) {
  SignatureType t;
  t.kind = Kind::Scalar;
  t.dtype = dtype;
  return t;
}

std::string to_text(const SignatureType& t) {
  std::string out;
  switch (t.kind) {
    case Kind::Any:
      return "any";
    case Kind::Scalar:
      return tenon::to_text(t.dtype);
    case Kind::Tensor:
      append_dims(out, t);
      return tensor_type_text(out, t.dtype);
    case Kind::Shape:
      out = "shape[";
      append_dims(out, t);
      return out + "]";
    case Kind::Tuple:
      out = "(";
      append_list(out, t.parts, t.parts.size());
      return out + (t.parts.size() == 1 ? ",)" : ")");
    case Kind::Function:
      out = "fn(";
      append_list(out, t.parts, t.parts.size() - 1);
      return out + ") -> " + to_text(t.parts.back());
    case Kind::Array:
      return "array[" + to_text(t.parts.front()) + "]";
    case Kind::Opaque:
      return t.name == kString ? t.name : "opaque[\"" + t.name + "\"]";
    case Kind::Adt:
      out = t.name;
      if (t.parts.empty()) return out;
      out += "[";
      append_list(out, t.parts, t.parts.size());
      return out + "]";
  }
  return out;
}

SignatureType parse_signature_type(std::string_view text) {
  return Reader(text).whole_type();
}

namespace {

// Replaces type parameters by the arguments of `of`, a value's type.
class Substitution {
 public:
  Substitution(const std::vector<std::string>& params, const SignatureType& of)
      : params_(params), of_(of) {
    for (const SignatureType& arg : of.parts) sizes_.push_back(parts_of(arg));
  }

  void apply(SignatureType* type) {
    if (type->kind == Kind::Adt && type->parts.empty()) {
      const auto at = static_cast<size_t>(std::ranges::find(params_, type->name) - params_.begin());
      if (at < std::min(params_.size(), of_.parts.size())) {
        count(sizes_[at]);
        *type = of_.parts[at];
        return;
      }
    }
    for (SignatureType& part : type->parts) apply(&part);
  }

 private:
  void count(size_t parts) {
    done_ += parts;
    if (done_ <= kMostTypeParts) return;
    throw_failure(
        ErrorKind::Unsupported, "the type of a value's part is too large to look at",
        cat("a value of the data type ", of_.name, ", which contains itself with larger types"),
        cat("types of at most ", kMostTypeParts, " parts"));
  }

  const std::vector<std::string>& params_;
  const SignatureType& of_;
  std::vector<size_t> sizes_;  // of the arguments
  size_t done_ = 0;
};

}  // namespace

size_t parts_of(const SignatureType& type) {
  size_t parts = 1;
  for (const SignatureType& part : type.parts) parts += parts_of(part);
  return parts;
}

std::vector<SignatureType> field_types(const AdtSignature& definition,
                                       const AdtSignature::Constructor& constructor,
                                       const SignatureType& type) {
  std::vector<SignatureType> out = constructor.fields;
  Substitution substitution(definition.type_params, type);
  for (SignatureType& field : out) substitution.apply(&field);
  return out;
}

std::string to_text(const AdtSignature& type) {
  std::string out = type.name;
  if (!type.type_params.empty()) out += cat("[", join(type.type_params, ", "), "]");
  out += " { ";
  for (const AdtSignature::Constructor& constructor : type.constructors) {
    if (&constructor != &type.constructors.front()) out += ", ";
    out += constructor.name;
    if (constructor.fields.empty()) continue;
    out += "(";
    append_list(out, constructor.fields, constructor.fields.size());
    out += ")";
  }
  return out + " }";
}

AdtSignature parse_adt_signature(std::string_view text) {
  return Reader(text).whole_adt();
}

}  // namespace tenon::vm

#include "tools/tenon/data_types.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "codegen/bytecode/data_types.h"
#include "graph/ir/text.h"
#include "loop/scalar_tensor.h"
#include "object/array.h"
#include "object/shape.h"
#include "support/error.h"
#include "support/poll.h"
#include "support/text.h"
#include "tools/tenon/input_spec.h"
#include "tools/tenon/json_tensor.h"
#include "tools/tenon/number_text.h"
#include "tools/tenon/tensor_store.h"
#include "tools/tenon/tensor_text.h"
#include "vm/isa/signature_match.h"

namespace tenon::tool {

using vm::SignatureType;
using Kind = SignatureType::Kind;

namespace {

constexpr size_t kMostParts = size_t{1} << 18;  // of 100 to 200 bytes

// The definition of a data type of the prelude, as files have it.
std::string prelude_text(const char* name) {
  return vm::to_text(codegen::adt_signature(*graph::prelude().at(name)));
}

}  // namespace

DataTypes::DataTypes(const std::vector<std::string>& definitions) {
  for (const std::string& text : definitions) {
    try {
      vm::AdtSignature definition = vm::parse_adt_signature(text);
      std::string name = definition.name;
      definitions_.emplace(std::move(name), std::move(definition));
    } catch (const Error& error) {
      throw Error(ErrorKind::Damaged, "the program describes a data type wrongly")
          .found(error.message())
          .expected("NAME[T] { CONSTRUCTOR, CONSTRUCTOR(TYPE, TYPE) }");
    }
  }
}

const DataTypes::Instance* DataTypes::find(const SignatureType& type) const {
  if (type.kind != Kind::Adt) return nullptr;
  std::string text = vm::to_text(type);
  if (const auto known = instances_.find(text); known != instances_.end()) return &known->second;
  const auto definition = definitions_.find(type.name);
  if (definition == definitions_.end()) return nullptr;
  static const std::string list_text = prelude_text("list");
  Instance made{&definition->second, {}, vm::to_text(definition->second) == list_text};
  for (const Constructor& constructor : made.definition->constructors) {
    made.fields.push_back(field_types(*made.definition, constructor, type));
    for (const SignatureType& field : made.fields.back()) parts_ += vm::parts_of(field);
  }
  if (parts_ > kMostParts) {
    throw Error(ErrorKind::Unsupported, "the types within a value are too large to look at")
        .found(
            cat("values of the data type ", type.name, ", which contains itself with other types"))
        .expected(cat("types of at most ", kMostParts, " parts in all"));
  }
  return &instances_.emplace(std::move(text), std::move(made)).first->second;
}

const DataTypes::Instance* DataTypes::find(const SignatureType& type, const CellObj& cell) const {
  const Instance* instance = find(type);
  const bool fits =
      instance && cell.tag >= 0 && cell.tag < static_cast<int64_t>(instance->fields.size()) &&
      cell.size == static_cast<int64_t>(instance->fields[static_cast<size_t>(cell.tag)].size());
  return fits ? instance : nullptr;
}

std::vector<std::string> without_prelude(std::vector<std::string> definitions) {
  std::erase(definitions, prelude_text("list"));
  std::erase(definitions, prelude_text("option"));
  return definitions;
}

std::vector<std::string> DataTypes::definitions_in(std::vector<const SignatureType*> types) const {
  std::vector<std::string> out;
  std::unordered_set<std::string_view> seen;
  Ticker ticker;
  for (size_t next = 0; next < types.size(); ++next) {
    ticker.tick();
    const SignatureType& type = *types[next];
    for (const SignatureType& part : type.parts) types.push_back(&part);
    if (type.kind != Kind::Adt || !seen.insert(type.name).second) continue;
    const auto definition = definitions_.find(type.name);
    if (definition == definitions_.end()) continue;
    out.push_back(vm::to_text(definition->second));
    for (const Constructor& constructor : definition->second.constructors) {
      for (const SignatureType& field : constructor.fields) types.push_back(&field);
    }
  }
  return without_prelude(std::move(out));
}

bool is_data(const SignatureType& type) {
  return type.kind == Kind::Adt || type.kind == Kind::Tuple || type.kind == Kind::Array ||
         type.kind == Kind::Function || type.kind == Kind::Shape || is_string(type);
}

bool is_string(const SignatureType& type) {
  return type.kind == Kind::Opaque && type.name == vm::kString;
}

namespace {

class DataParser {
 public:
  DataParser(std::string_view text, const DataTypes& types) : text_(text), types_(types) {}

  // Values are nested to any depth.
  Any whole(const SignatureType& type) {
    const SignatureType* next = &type;
    std::vector<Open> open;  // the values around the next one
    Any out;
    Ticker ticker;
    while (next) {
      std::optional<Any> done = begin(*next, &open);
      if (done && next->kind == Kind::Tensor) require_fit(*done, *next, open);
      next = nullptr;
      for (; done && !open.empty() && !next; ticker.tick()) {
        open.back().items.push_back(std::move(*done));
        done.reset();
        next = next_in(open.back());
        if (next) continue;
        done = made_of(std::move(open.back()));
        open.pop_back();
      }
      if (done) {
        out = std::move(*done);
      } else if (!next) {
        next = first_in(open.back());
      }
    }
    skip();
    if (at_ != text_.size()) fail("the end of the value", type);
    return out;
  }

 private:
  // A value whose parts are being read.
  struct Open {
    const SignatureType* type;
    const std::vector<SignatureType>* parts;  // types of the fields; null for elements
    const SignatureType* element = nullptr;
    int64_t tag = -1;  // of a cell; -1 for lists, arrays and tuples
    std::vector<Any> items = {};
  };

  [[noreturn]] void fail(const std::string& expected, const SignatureType& type) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    throw Error(ErrorKind::Usage, cat("not a value of type ", vm::to_text(type)))
        .found(rest.empty() ? "the end" : quoted(rest.substr(0, 40)), cat("column ", at_ + 1))
        .expected(expected);
  }
  // The program checks its arguments, also those in tuples, but no tensors within arrays and cells.
  void require_fit(const Any& tensor, const SignatureType& type,
                   const std::vector<Open>& around) const {
    const auto is_tuple = [](const Open& value) { return value.type->kind == Kind::Tuple; };
    if (std::ranges::all_of(around, is_tuple) || vm::fits(type, tensor)) return;
    throw Error(ErrorKind::Usage, cat("not a value of type ", vm::to_text(type)))
        .found(vm::found_text(type, tensor), cat("column ", token_at_ + 1))
        .expected(vm::to_text(type));
  }

  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  void skip() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // The text up to a comma or a closing bracket that isn't within brackets of its own.
  std::string_view token() {
    skip();
    const size_t begin = token_at_ = at_;
    bool quoted = false;
    for (int open = 0; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') quoted = !quoted;
      if (quoted) {
        at_ += c == '\\' ? 1 : 0;
        continue;
      }
      const bool opens = c == '(' || c == '[' || c == '{',
                 closes = c == ')' || c == ']' || c == '}';
      if (open == 0 && (closes || c == ',')) break;
      open += opens ? 1 : closes ? -1 : 0;
    }
    at_ = std::min(at_, text_.size());
    std::string_view out = text_.substr(begin, at_ - begin);
    while (!out.empty() && is_space(out.back())) out.remove_suffix(1);
    return out;
  }

  // The value, or nullopt after a bracket, where it is opened.
  std::optional<Any> begin(const SignatureType& type, std::vector<Open>* open) {
    switch (type.kind) {
      case Kind::Scalar:
        return scalar(type);
      case Kind::Tensor:
        return tensor(type);
      case Kind::Shape:
        return shape(type);
      case Kind::Tuple:
        if (!take('(')) fail("a tuple in parentheses", type);
        return opened({&type, &type.parts}, open);
      case Kind::Array:
        return elements(type, open);
      case Kind::Adt:
        return cell(type, open);
      case Kind::Opaque:
        if (is_string(type)) return string(type);
        [[fallthrough]];
      default:
        fail(type.kind == Kind::Function ? "no function: values from outside are data"
                                         : "a value of a type that can be written as text",
             type);
    }
  }

  // The value if it has no parts.
  std::optional<Any> opened(Open value, std::vector<Open>* open) {
    const bool empty = value.parts ? value.parts->empty() : take(']');
    if (empty && value.parts) expect_end(value);
    if (empty) return made_of(std::move(value));
    open->push_back(std::move(value));
    return std::nullopt;
  }

  std::optional<Any> elements(const SignatureType& type, std::vector<Open>* open) {
    if (!take('[')) fail("values in brackets, such as [1, 2]", type);
    return opened({&type, nullptr, &type.parts[0]}, open);
  }

  static const SignatureType* first_in(const Open& value) {
    return value.parts ? &value.parts->front() : value.element;
  }

  // The type of the part after those that were read; null at the closing bracket, which it takes.
  const SignatureType* next_in(const Open& value) {
    if (!value.parts) {
      if (take(']')) return nullptr;
      if (!take(',')) fail("',' or ']'", *value.type);
      return value.element;
    }
    const size_t count = value.items.size();
    if (count == value.parts->size()) {
      if (count == 1) take(',');  // (x,)
      expect_end(value);
      return nullptr;
    }
    const SignatureType& next = (*value.parts)[count];
    if (!take(',')) fail(cat("',' and ", vm::to_text(next)), *value.type);
    return &next;
  }

  void expect_end(const Open& value) {
    if (!take(')')) fail(cat("')' after ", counted(value.parts->size(), "field")), *value.type);
  }

  static Any made_of(Open value) {
    if (value.tag >= 0) return CellObj::of(value.tag, value.items);
    if (value.type->kind != Kind::Adt) {
      if (value.parts && value.items.empty()) return {};  // the unit value
      return Array<Any>(value.items);
    }
    Any out = CellObj::of(kNil, size_t{0});
    for (size_t i = value.items.size(); i-- > 0;) {
      out = CellObj::of(kCons, std::vector{std::move(value.items[i]), std::move(out)});
    }
    return out;
  }

  Any scalar(const SignatureType& type) {
    skip();
    const size_t begin = at_;
    if (auto number = scalar_value(type.dtype, token())) return *number;
    at_ = begin;
    fail(type.dtype.is_bool() ? "true or false" : cat("a number of ", numbers_of(type.dtype)),
         type);
  }

  Any tensor(const SignatureType& type) {
    skip();
    const size_t begin = at_;
    const std::string_view text = token();
    if (text.starts_with("@")) return read_tensor(std::string(text.substr(1)));
    if (is_tensor_text(text)) return parse_tensor(text);
    if (is_json_tensor(text, type.dtype)) return parse_json_tensor(text, type.dtype);
    if (auto number = scalar_value(type.dtype, text))
      return loop::scalar_tensor(type.dtype, *number);
    at_ = begin;
    fail(cat("a tensor such as tensor[2; f32]{1, 2} or [1, 2], ",
             type.rank == 0 ? "@FILE.npy or a number" : "or @FILE.npy"),
         type);
  }

  // As a literal of the language.
  Any string(const SignatureType& type) {
    skip();
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (!text_.substr(at_).starts_with('"') || end >= text_.size()) {
      fail("a string in double quotes", type);
    }
    const std::string_view literal = text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    return graph::parse_constant(literal);
  }

  Any shape(const SignatureType& type) {
    skip();
    const size_t begin = at_;
    if (text_.substr(at_).starts_with("shape")) at_ += 5;
    std::vector<int64_t> dims;
    const SignatureType size = SignatureType::scalar(i64);
    if (!take('[')) fail("sizes in brackets, such as [1, 2]", type);
    while (!take(']')) {
      if (!dims.empty() && !take(',')) fail("',' or ']'", type);
      dims.push_back(scalar(size).as<int64_t>());
    }
    if (dims.size() <= kMaxRank && std::ranges::all_of(dims, [](int64_t d) { return d >= 0; })) {
      return Shape(dims);
    }
    at_ = begin;
    fail(cat("at most ", kMaxRank, " sizes, none of them negative"), type);
  }

  std::optional<Any> cell(const SignatureType& type, std::vector<Open>* open) {
    const DataTypes::Instance* instance = types_.find(type);
    if (!instance) fail("a value of a data type that the program describes", type);
    skip();
    if (instance->is_list && at_ < text_.size() && text_[at_] == '[') return elements(type, open);
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    const std::string_view name = text_.substr(begin, at_ - begin);
    const auto& constructors = instance->definition->constructors;
    const auto found = std::ranges::find(constructors, name, &DataTypes::Constructor::name);
    if (found == constructors.end()) {
      at_ = begin;
      fail(cat(instance->is_list ? "[...], " : "", vm::to_text(*instance->definition)), type);
    }
    const auto tag = static_cast<size_t>(found - constructors.begin());
    if (!found->fields.empty() && !take('(')) {
      fail(cat("'(' and ", counted(found->fields.size(), "field")), type);
    }
    if (found->fields.empty()) return CellObj::of(static_cast<int64_t>(tag), size_t{0});
    return opened({&type, &instance->fields[tag], nullptr, static_cast<int64_t>(tag)}, open);
  }

  std::string_view text_;
  const DataTypes& types_;
  size_t at_ = 0;
  size_t token_at_ = 0;  // where the last token begins
};

}  // namespace

Any parse_data(std::string_view text, const SignatureType& type, const DataTypes& types) {
  return DataParser(text, types).whole(type);
}

}  // namespace tenon::tool

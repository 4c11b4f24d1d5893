// Data types: their definitions, and their values. Included by tenon/tenon.h.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <ranges>

#include "tenon/cpp/container.h"

namespace tenon {
inline namespace v1 {

/// A type as a program states it (Parameter::type), taken apart.
struct Type {
  enum class Kind { any, tensor, scalar, shape, tuple, function, array, data, opaque };

  Kind kind = Kind::any;
  std::string text;  ///< all of it: "list[i64]"
  std::string name;  ///< of a data type: "list"; of the elements of a tensor or scalar: "i64"
  /// Of a tuple or an array; the parameters of a function, then its result; the type arguments of a
  /// data type.
  std::vector<Type> parts;
  std::optional<int> rank = {};  ///< of a tensor, if the type states it

  /// Throws DamagedError for a text that is not a type.
  static Type parse(std::string_view text);
};

/// The definition of a data type. A constructor's place is the tag of the cells that it makes.
struct TypeDefinition {
  struct Constructor {
    std::string name;
    std::vector<Type> fields;
  };

  std::string text;  ///< "tree[T] { Leaf, Node(tree[T], T, tree[T]) }"
  std::string name;
  std::vector<std::string> params;
  std::vector<Constructor> constructors;

  /// Throws DamagedError for a text that is not a definition.
  static TypeDefinition parse(std::string_view text);
  /// The types of a constructor's fields in values of `type`, which has arguments for the
  /// parameters. A data type may contain itself with larger arguments: throws UnsupportedError
  /// where the texts of a field's type and its parts take more than 8 MB.
  std::vector<Type> field_types(size_t tag, const Type& type) const;
};

namespace detail {

/// The dtype of that name in the language; nothing for other names.
inline std::optional<DLDataType> element_type(std::string_view name) {
  struct Row {
    std::string_view name;
    DLDataType dtype;
  };
  static constexpr Row kRows[] = {
#define TENON_DTYPE(identifier, name, code, bits) {name, {code, bits, 1}},
#include "tenon/dtypes.def"
  };
  const auto row = std::ranges::find(kRows, name, &Row::name);
  return row == std::end(kRows) ? std::nullopt : std::optional(row->dtype);
}

/// What a program's definitions have besides its own, if it uses them.
inline constexpr const char* kListText = "list[T] { Nil, Cons(T, list[T]) }";
inline constexpr const char* kOptionText = "option[T] { None, Some(T) }";
inline constexpr const char* kPrelude[] = {kListText, kOptionText};
/// As models of ONNX have it.
inline constexpr const char* kMapText = "map[K, V] { Map(K, V) }";

/// Of the dimensions of a tensor's type: "n, 4", "rank=3", or "*".
inline std::optional<int> rank_of(std::string_view dims) {
  constexpr std::string_view kRank = "rank=";
  if (dims.starts_with('*')) return std::nullopt;
  if (dims.starts_with(kRank)) {
    int rank = 0;
    const auto end = dims.data() + dims.size();
    const auto read = std::from_chars(dims.data() + kRank.size(), end, rank);
    return read.ec == std::errc() ? std::optional(rank) : std::nullopt;
  }
  int rank = 1, open = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const char c = dims[i];
    if (c == '"') {
      while (++i < dims.size() && dims[i] != '"') i += dims[i] == '\\';
    } else {
      open += c == '(' ? 1 : c == ')' ? -1 : 0;
      rank += c == ',' && open == 0;
    }
  }
  return rank;
}

/// Reads types and definitions, in the notation of the programs' files.
class TypeReader {
 public:
  explicit TypeReader(std::string_view text) noexcept : text_(text) {}

  Type whole_type() {
    Type out = type(0);
    if (peek() != '\0') fail();
    return out;
  }
  TypeDefinition whole_definition() {
    TypeDefinition out;
    out.text = text_;
    out.name = word();
    if (take('[')) {
      do out.params.emplace_back(word());
      while (take(','));
      need(']');
    }
    need('{');
    do {
      out.constructors.push_back({std::string(word()), {}});
      if (take('(')) out.constructors.back().fields = list(')', 0);
    } while (take(','));
    need('}');
    if (peek() != '\0') fail();
    return out;
  }

  static std::string text_of(const Type& t) {
    const auto list = [&](size_t count) {
      std::string out;
      for (size_t i = 0; i < count; ++i) out += (i ? ", " : "") + t.parts[i].text;
      return out;
    };
    switch (t.kind) {
      case Type::Kind::tuple:
        return "(" + list(t.parts.size()) + (t.parts.size() == 1 ? ",)" : ")");
      case Type::Kind::function:
        return "fn(" + list(t.parts.size() - 1) + ") -> " + t.parts.back().text;
      case Type::Kind::array:
        return "array[" + list(1) + "]";
      case Type::Kind::data:
        return t.parts.empty() ? t.name : t.name + "[" + list(t.parts.size()) + "]";
      default:
        return t.text;
    }
  }

 private:
  static constexpr int kDeepest = 200;  // types in each other

  [[noreturn]] void fail() const {
    throw DamagedError("a program describes a type wrongly", {{"found", std::string(text_)}});
  }
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) fail();
  }
  std::string_view word() {
    peek();
    const size_t begin = at_;
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.';
    };
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    if (at_ == begin) fail();
    return text_.substr(begin, at_ - begin);
  }
  std::vector<Type> list(char end, int depth) {
    std::vector<Type> out;
    while (!take(end)) {
      if (!out.empty()) need(',');
      if (!out.empty() && take(end)) break;  // (x,)
      out.push_back(type(depth + 1));
    }
    return out;
  }
  /// What is in brackets, which may have quoted names in it.
  std::string_view brackets() {
    need('[');
    const size_t begin = at_;
    for (int open = 1; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        while (++at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\';
      } else if (c == '[') {
        ++open;
      } else if (c == ']' && --open == 0) {
        return text_.substr(begin, at_++ - begin);
      }
    }
    fail();
  }
  /// A module's type may end in what is known of the value: `i64 = [n]`.
  Type type(int depth) {
    Type t = plain_type(depth);
    if (take('=')) brackets();
    return t;
  }
  Type plain_type(int depth) {
    if (depth > kDeepest) fail();
    Type t;
    if (take('(')) {
      t.kind = Type::Kind::tuple;
      t.parts = list(')', depth);
      t.text = text_of(t);
      return t;
    }
    const std::string_view name = word();
    if (name == "any") {
      t.text = name;
    } else if (name == "tensor" || name == "shape" || name == "opaque") {
      const std::string_view inside = brackets();
      t.kind = name == "tensor"  ? Type::Kind::tensor
               : name == "shape" ? Type::Kind::shape
                                 : Type::Kind::opaque;
      t.text = std::string(name) + "[" + std::string(inside) + "]";
      // "n, 4; f32", or "f32"
      if (name == "tensor") {
        const size_t semicolon = inside.rfind(';');
        t.name = inside.substr(semicolon == std::string_view::npos ? 0 : semicolon + 1);
        t.rank = semicolon == std::string_view::npos ? 0 : rank_of(inside.substr(0, semicolon));
        std::erase(t.name, ' ');
        if (!element_type(t.name)) fail();
      }
    } else if (name == "string") {
      t.kind = Type::Kind::opaque;
      t.text = name;
    } else if (name == "fn") {
      t.kind = Type::Kind::function;
      need('(');
      t.parts = list(')', depth);
      need('-');
      need('>');
      t.parts.push_back(type(depth + 1));
      t.text = text_of(t);
    } else if (name == "array") {
      t.kind = Type::Kind::array;
      need('[');
      t.parts = {type(depth + 1)};
      need(']');
      t.text = text_of(t);
    } else {
      t.kind = element_type(name) ? Type::Kind::scalar : Type::Kind::data;
      t.name = name;
      if (t.kind == Type::Kind::data && take('[')) t.parts = list(']', depth);
      t.text = text_of(t);
      if (t.kind == Type::Kind::scalar) t.text = name;
    }
    return t;
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// The bytes of the texts of a type and its parts.
inline size_t text_bytes(const Type& type) {
  size_t bytes = type.text.size();
  for (const Type& part : type.parts) bytes += text_bytes(part);
  return bytes;
}

/// Replaces type parameters by the arguments of `of`, a value's type.
class Substitution {
 public:
  Substitution(const std::vector<std::string>& params, const Type& of) : params_(params), of_(of) {
    for (const Type& arg : of.parts) bytes_.push_back(text_bytes(arg));
  }

  void apply(Type* type) {
    if (type->kind == Type::Kind::data && type->parts.empty()) {
      const auto at = static_cast<size_t>(std::ranges::find(params_, type->name) - params_.begin());
      if (at < params_.size() && at < of_.parts.size()) {
        count(bytes_[at]);
        *type = of_.parts[at];
        return;
      }
    }
    for (Type& part : type->parts) apply(&part);
    type->text = TypeReader::text_of(*type);
    count(type->text.size());
  }

 private:
  static constexpr size_t kMost = size_t{8} << 20;

  void count(size_t bytes) {
    done_ += bytes;
    if (done_ <= kMost) return;
    throw UnsupportedError("the type of a value's part is too large to look at",
                           {{"found", "a value of the data type " + of_.name +
                                          ", which contains itself with larger types"},
                            {"expected", "types that take at most 8 MB as text"}});
  }

  const std::vector<std::string>& params_;
  const Type& of_;
  std::vector<size_t> bytes_;  // of the arguments
  size_t done_ = 0;
};

}  // namespace detail

inline Type Type::parse(std::string_view text) {
  return detail::TypeReader(text).whole_type();
}
inline TypeDefinition TypeDefinition::parse(std::string_view text) {
  return detail::TypeReader(text).whole_definition();
}
inline std::vector<Type> TypeDefinition::field_types(size_t tag, const Type& type) const {
  std::vector<Type> out = constructors.at(tag).fields;
  detail::Substitution substitution(params, type);
  for (Type& field : out) substitution.apply(&field);
  return out;
}

/// A value of a data type: the tag of its constructor, and its fields. Immutable.
class Cell : public Value {
 public:
  static constexpr const char* kTypeName = "cell";
  static bool accepts(const Value& v) noexcept { return v.type_index() == TENON_CELL; }
  static Cell unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }

  Cell() = default;
  Cell(int64_t tag, std::span<const Value> fields) {
    detail::check(tenon_cell_create(tag, reinterpret_cast<const tenon_any*>(fields.data()),
                                    fields.size(), out()));
  }
  Cell(int64_t tag, std::initializer_list<Value> fields)
      : Cell(tag, std::span(std::data(fields), fields.size())) {}

  /// -1 if this holds None.
  int64_t tag() const noexcept {
    int64_t tag = -1;
    tenon_cell_view(raw(), &tag, nullptr);
    return tag;
  }
  /// Borrowed; none if this holds None.
  std::span<const Value> fields() const& noexcept {
    size_t size = 0;
    const tenon_any* fields = tenon_cell_view(raw(), nullptr, &size);
    return {reinterpret_cast<const Value*>(fields), size};
  }
  std::span<const Value> fields() const&& = delete;
  size_t size() const noexcept { return fields().size(); }
  /// Throws UsageError for an index that is not below the size.
  Value operator[](size_t index) const {
    if (index < size()) return fields()[index];
    throw UsageError("a cell has no field at this index",
                     {{"found", std::to_string(index)},
                      {"expected", "a number below " + std::to_string(size())}});
  }

 private:
  Cell(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}
};

namespace detail {

/// Whether a float of the dtype holds every bit of an integer of this magnitude.
inline bool holds(DLDataType dtype, int64_t value) noexcept {
  const int digits = dtype.code == kDLBfloat ? 8
                     : dtype.bits == 16      ? 11
                     : dtype.bits == 32      ? 24
                                             : 53;
  const int64_t most = int64_t{1} << digits;
  return dtype.bits >= 16 && value >= -most && value <= most;
}

inline bool in_range(DLDataType dtype, int64_t value) noexcept {
  if (dtype.bits == 64) return true;
  if (dtype.code == kDLUInt) return value >= 0 && value < int64_t{1} << dtype.bits;
  const int64_t most = int64_t{1} << (dtype.bits - 1);
  return value >= -most && value < most;
}

/// Makes a field's value that of its type: integers become floats that hold them, also in arrays.
/// Throws UsageError for a value of another type. What a data type or a function is of isn't known
/// of its values.
class FieldFit {
 public:
  /// `place` is the field, in errors: "field 1 of Node".
  explicit FieldFit(std::string place) : place_(std::move(place)) {}

  Value operator()(Value value, const Type& type) const {
    switch (type.kind) {
      case Type::Kind::scalar:
        return scalar(std::move(value), type);
      case Type::Kind::tensor:
        return require(std::move(value), TENON_TENSOR, type);
      case Type::Kind::array:
        return array(require(std::move(value), TENON_ARRAY, type), type.parts.at(0));
      case Type::Kind::data:
        return require(std::move(value), TENON_CELL, type);
      case Type::Kind::opaque:
        if (type.text == "string" && !value.get_if<std::string_view>()) fail(value, type);
        return value;
      default:
        return value;
    }
  }

 private:
  Value require(Value value, int32_t kind, const Type& type) const {
    if (value.type_index() != kind) fail(value, type);
    return value;
  }

  Value scalar(Value value, const Type& type) const {
    const DLDataType dtype = element_type(type.name).value_or(DLDataType{});
    const int32_t kind = value.type_index();
    if (dtype.code == kDLBool) return require(std::move(value), TENON_BOOL, type);
    const bool is_int = dtype.code == kDLInt || dtype.code == kDLUInt;
    if (!is_int && kind == TENON_FLOAT) return value;
    if (kind != TENON_INT) fail(value, type);
    const int64_t number = value.raw()->v.i;
    if (is_int ? !in_range(dtype, number) : !holds(dtype, number)) fail(value, type);
    return is_int ? value : Value(static_cast<double>(number));
  }

  Value array(Value value, const Type& type) const {
    std::vector<Value> items;
    size_t at = 0;
    bool is_changed = false;
    for (Value item : Array::unchecked(value)) {
      const int32_t before = item.type_index();
      const FieldFit inside("element " + std::to_string(at++) + " of " + place_);
      const auto* const object = item.raw()->v.object;
      items.push_back(inside(std::move(item), type));
      const Value& made = items.back();
      is_changed = is_changed || made.type_index() != before ||
                   (before == TENON_ARRAY && made.raw()->v.object != object);
    }
    return is_changed ? Value(Array(items)) : value;
  }

  [[noreturn]] void fail(const Value& value, const Type& type) const {
    const bool is_number = value.type_index() == TENON_INT;
    throw UsageError(place_ + " has another type",
                     {{"found", value.type_key() + (is_number ? " " + value.repr() : "")},
                      {"expected", type.text}});
  }

  std::string place_;
};

/// Prints values by their types. Values may be of any depth: no function calls itself for a part.
class DataPrinter {
 public:
  explicit DataPrinter(const std::vector<TypeDefinition>& definitions)
      : definitions_(definitions) {}

  std::string text(const Value& value, const Type& type) {
    std::string out;
    pending_.push_back({"", value, type});
    while (!pending_.empty() && out.size() < kMost) {
      const Item item = std::move(pending_.back());
      pending_.pop_back();
      out += item.before;
      if (item.type) print(item.value, *item.type, &out);
    }
    return pending_.empty() ? out : out + "...";
  }

 private:
  /// Parts that several values share would have a text of any length.
  static constexpr size_t kMost = size_t{1} << 16;

  /// A text, and what is printed after it: a value, or nothing.
  struct Item {
    std::string before;
    Value value;
    std::optional<Type> type;
  };

  void print(const Value& value, const Type& type, std::string* out) {
    const bool is_array = value.type_index() == TENON_ARRAY;
    if (type.kind == Type::Kind::tuple && value.type_index() == TENON_NONE) {
      *out += "()";
    } else if (type.kind == Type::Kind::tuple && is_array) {
      print_parts("(", items_of(value), type.parts, type.parts.size() == 1 ? ",)" : ")", out);
    } else if (type.kind == Type::Kind::array && is_array) {
      const std::vector<Value> items = items_of(value);
      print_parts("[", items, std::vector<Type>(items.size(), type.parts[0]), "]", out);
    } else if (type.kind != Type::Kind::data || !print_cell(value, type, out)) {
      *out += value.repr();
    }
  }

  /// As many as may be printed: each takes three characters.
  static std::vector<Value> items_of(const Value& value) {
    std::vector<Value> items(std::min(static_cast<size_t>(tenon_array_size(value.raw())), kMost));
    for (size_t i = 0; i < items.size(); ++i)
      check(tenon_array_get(value.raw(), i, items[i].out()));
    return items;
  }

  /// "[1, 2]"; false for a list that no Nil ends.
  bool print_list(Cell rest, const Type& element, std::string* out) {
    std::vector<Value> items;
    while (rest.tag() == kCons && rest.size() == 2 && items.size() < kMost) {
      items.push_back(rest[0]);
      const Value next = rest[1];
      if (!Cell::accepts(next)) return false;
      rest = Cell::unchecked(next);
    }
    if (items.size() < kMost && rest.tag() != kNil) return false;
    const std::vector<Type> types(items.size(), element);
    print_parts("[", items, types, "]", out);
    return true;
  }

  /// False for a value that no constructor of the type can have made.
  bool print_cell(const Value& value, const Type& type, std::string* out) {
    const auto definition = std::ranges::find(definitions_, type.name, &TypeDefinition::name);
    if (definition == definitions_.end() || !Cell::accepts(value)) return false;
    const Cell cell = Cell::unchecked(value);
    if (definition->text == detail::kListText && type.parts.size() == 1)
      return print_list(cell, type.parts[0], out);
    if (cell.tag() < 0 || static_cast<size_t>(cell.tag()) >= definition->constructors.size())
      return false;
    const auto tag = static_cast<size_t>(cell.tag());
    const std::vector<Type> types = definition->field_types(tag, type);
    if (types.size() != cell.size()) return false;
    *out += definition->constructors[tag].name;
    const std::vector<Value> fields(cell.fields().begin(), cell.fields().end());
    if (!fields.empty()) print_parts("(", fields, types, ")", out);
    return true;
  }

  void print_parts(const char* open, const std::vector<Value>& parts,
                   const std::vector<Type>& types, const char* close, std::string* out) {
    *out += open;
    pending_.push_back({close, {}, {}});
    for (size_t i = std::min(parts.size(), types.size()); i-- > 0;) {
      pending_.push_back({i > 0 ? ", " : "", parts[i], types[i]});
    }
  }

  const std::vector<TypeDefinition>& definitions_;
  std::vector<Item> pending_;  ///< the next one last
};

}  // namespace detail

/// A constructor of a program's data type:
///
///   Constructor leaf = program.constructor("Leaf"), node = program.constructor("Node");
///   Cell tree = node(leaf, 1, leaf);
///   if (auto fields = node.match<Cell, int64_t, Cell>(tree)) auto& [left, x, right] = *fields;
class Constructor {
 public:
  /// Of a data type that isn't known: the fields may be any values.
  Constructor(std::string name, int64_t tag, size_t size)
      : name_(std::move(name)), tag_(tag), size_(size) {}
  /// One of a definition's.
  Constructor(const TypeDefinition& type, size_t tag)
      : Constructor(type.constructors.at(tag).name, static_cast<int64_t>(tag),
                    type.constructors[tag].fields.size()) {
    fields_ = type.constructors[tag].fields;
    for (Type& field : fields_) forget_params(type.params, &field);
  }

  const std::string& name() const noexcept { return name_; }
  int64_t tag() const noexcept { return tag_; }
  /// The number of fields.
  size_t size() const noexcept { return size_; }

  /// Throws UsageError unless it gets as many fields as the constructor has, of their types. An
  /// integer becomes a float where the field is one that holds it.
  template <class... A>
  Cell operator()(A&&... fields) const {
    if (sizeof...(A) != size_) {
      throw UsageError(
          "'" + name_ + "' is given the wrong number of fields",
          {{"found", std::to_string(sizeof...(A))}, {"expected", std::to_string(size_)}});
    }
    std::array<Value, sizeof...(A)> values{Value(std::forward<A>(fields))...};
    for (size_t i = 0; i < fields_.size(); ++i) {
      const detail::FieldFit fit("field " + std::to_string(i) + " of " + name_);
      values[i] = fit(std::move(values[i]), fields_[i]);
    }
    return Cell(tag_, std::span<const Value>(values));
  }
  /// Whether a cell has this constructor's tag and number of fields. Values don't know their types:
  /// constructors of other data types may have the same.
  bool made(const Value& value) const noexcept {
    int64_t tag = -1;
    size_t size = 0;
    tenon_cell_view(value.raw(), &tag, &size);
    return tag == tag_ && size == size_;
  }
  /// The fields of such a cell as these types; nothing for other values, and if a field is of
  /// another type.
  template <class... T>
  std::optional<std::tuple<T...>> match(const Value& value) const {
    if (sizeof...(T) != size_ || !made(value)) return std::nullopt;
    return match<T...>(Cell::unchecked(value), std::index_sequence_for<T...>());
  }

 private:
  template <class... T, size_t... I>
  static std::optional<std::tuple<T...>> match(const Cell& cell, std::index_sequence<I...>) {
    [[maybe_unused]] const std::span<const Value> fields = cell.fields();
    std::tuple<std::optional<T>...> items{detail::read<T>(fields[I])...};
    if (!(std::get<I>(items).has_value() && ...)) return std::nullopt;
    return std::tuple<T...>(*std::move(std::get<I>(items))...);
  }

  // A parameter stands for any type.
  static void forget_params(const std::vector<std::string>& params, Type* type) {
    const bool is_name = type->kind == Type::Kind::data && type->parts.empty();
    if (is_name && std::ranges::find(params, type->name) != params.end()) {
      type->kind = Type::Kind::any;
    }
    for (Type& part : type->parts) forget_params(params, &part);
  }

  std::string name_;
  int64_t tag_;
  size_t size_;
  std::vector<Type> fields_;  // none if they aren't known
};

/// A constructor without fields is its value.
template <>
struct Conversion<Constructor> {
  static Value make(const Constructor& constructor) { return constructor(); }
};

/// The elements as a value of type list[T]: `list(std::vector{1, 2})`, `list({1, 2})`.
/// `as<std::vector<T>>()` reads it.
template <std::ranges::bidirectional_range R>
Cell list(const R& items) {
  Cell out(detail::kNil, {});
  for (auto it = std::ranges::end(items); it != std::ranges::begin(items);) {
    out = Cell(detail::kCons, {Value(static_cast<std::ranges::range_value_t<R>>(*--it)), out});
  }
  return out;
}
inline Cell list(std::initializer_list<Value> items) {
  return list(std::span(std::data(items), items.size()));
}

/// Values of type option[T]. `as<std::optional<T>>()` reads them.
inline Cell some(Value value) {
  return Cell(detail::kSome, {std::move(value)});
}
inline Cell none() {
  return Cell(detail::kNone, {});
}
template <class T>
Cell option(const std::optional<T>& given) {
  return given ? some(Value(*given)) : none();
}

}  // namespace v1
}  // namespace tenon

// Parses types and sizes of IR text.

#include <charconv>

#include "graph/ir/expected_text.h"
#include "graph/ir/name_text.h"
#include "graph/ir/parser.h"
#include "loop/dim_sum.h"
#include "object/tensor.h"

namespace tenon::graph {

namespace {
// A limit on names and numbers in one size, which bounds the time to normalise it. No real program
// reaches it.
constexpr size_t kMaxDimAtoms = 2048;

// What other languages call types.
constexpr OtherWord kTypesElsewhere[] = {
    {"int", "i64"}, {"long", "i64"},     {"float", "f32"},  {"double", "f64"}, {"half", "f16"},
    {"byte", "u8"}, {"boolean", "bool"}, {"str", "string"}, {"vec", "array"},  {"vector", "array"}};
}  // namespace

Dim Parser::size() {
  return whole_shown("a size", [&] { return dim(); });
}

TypeRef Parser::whole_type(const Map<String, Ref<const AdtDefinition>>& adts,
                           const Array<String>& type_params) {
  for (const String& name : type_params) type_vars_.insert(name.view());
  for (const auto* known : {&prelude(), &adts}) {
    for (const auto& [name, adt] : *known) adt_arity_[name.view()] = adt->type_params.size();
  }
  return whole_shown("a type", [&] { return type(); });
}

Dim Parser::dim() {
  if (dim_depth_ == 0) dim_atoms_ = 0;
  Nest nest(this, &dim_depth_);
  Token first = peek();
  try {
    DimSum sum;
    sum.add(dim_term());
    while (true) {
      if (accept("+")) {
        sum.add(dim_term());
      } else if (accept("-")) {
        sum.add(dim_term(), -1);
      } else {
        poll();  // large sums and products take long
        return sum.total();
      }
    }
  } catch (Error& e) {  // overflow, division by zero, too many terms
    e.at(source_.span(first.begin));
    throw;
  }
}

Dim Parser::dim_term() {
  Dim d = dim_factor();
  while (accept("*")) {
    Dim e = dim_factor();
    size_t terms =
        std::max<size_t>(d.node().args.size(), 1) * std::max<size_t>(e.node().args.size(), 1);
    if (terms > kMaxDimAtoms) fail("this size has too many terms", cat("at most ", kMaxDimAtoms));
    poll();
    d = d * e;
  }
  return d;
}

Dim Parser::dim_factor() {
  if (++dim_atoms_ > kMaxDimAtoms) {
    fail("this size has too many terms", cat("at most ", kMaxDimAtoms));
  }
  const Token& t = peek();
  if (t.is("-")) {
    Nest nest(this, &dim_depth_);
    // The least integer can't be parsed as a negated number.
    if (peek(1).kind == TokenKind::kInt) return Dim(int_value("a size"));
    take();
    return Dim(0) - dim_factor();
  }
  if (t.kind == TokenKind::kInt) return Dim(int_value("a size"));
  if (t.kind == TokenKind::kString) {
    if (printable(t.text) != t.text) fail("a symbol has no control characters", "another name");
    return Dim::symbol(take().text);
  }
  if (accept("(")) {
    Dim d = dim();
    expect(")", "after a size");
    return d;
  }
  if (t.kind != TokenKind::kWord) fail("a size is missing", "a number or a symbol");
  std::string_view name = t.text;
  if (name == "size_of" && peek(1).is("(")) return size_of();
  if (peek(1).is("(")) {
    const DimFunction* function = find_dim_function(name);
    if (!function) {
      std::vector<std::string> names;
      for (const DimFunction& f : dim_functions()) names.emplace_back(f.name);
      fail(cat("there is no function of sizes '", name, "'"), tenon::join(names, ", "));
    }
    take();
    take();
    Dim a = dim();
    expect(",", "between two sizes");
    Dim b = dim();
    while (accept(",")) {  // a canonical min or max may have more
      a = function->apply(a, b);
      b = dim();
    }
    expect(")", "after two sizes");
    return function->apply(a, b);
  }
  if (is_reserved(name)) {
    fail(cat("'", name, "' is a word of the language"),
         cat("a symbol; a symbol of that name is written \"", name, "\""));
  }
  return Dim::symbol(take().text);
}

// size_of(%i)
Dim Parser::size_of() {
  const Token first = take();
  if (builder_.span().empty()) {
    fail_at(first, "size_of has no value here",
            "a symbol, or size_of in a block: only there is a value known");
  }
  take();
  const Operand value = operand();
  expect(")", "after size_of's operand");
  const TypeRef type = type_of(value);
  const auto* scalar = type ? type_as<ScalarType>(type) : nullptr;
  if (!scalar || scalar->dtype != i64) {
    throw error_at(first, "size_of of a value that isn't an i64").found(to_text(type));
  }
  return builder_.elements_of(value)[0];
}

std::vector<Dim> Parser::dims(const char* where) {
  std::vector<Dim> out;
  expect("[", where);
  list("]", "after sizes", [&] { out.push_back(dim()); });
  return out;
}

std::optional<DataType> Parser::element_type(const Token& t) {
  if (t.kind != TokenKind::kWord) return std::nullopt;
  auto d = parse_dtype(t.text);
  return d && is_tensor_dtype(*d) ? d : std::nullopt;
}

std::optional<DataType> Parser::scalar_element_type(const Token& t) {
  auto d = element_type(t);
  return d && is_scalar_dtype(*d) ? d : std::nullopt;
}

std::optional<DataType> Parser::tensor_element_type(const Token& t) {
  return t.word(kStringElements) ? string_elements : element_type(t);
}

DataType Parser::dtype() {
  const Token& t = peek();
  if (auto d = tensor_element_type(t)) {
    take();
    return *d;
  }
  fail(t.kind == TokenKind::kWord ? cat("there is no element type '", t.text, "'")
                                  : "an element type is missing",
       cat(kTensorDtypes, "; or string"));
}

// tensor[n, 4; f32]  tensor[f32]  tensor[rank=2; f32]  tensor[*; f32]  tensor[n; f32; device=1]
Ref<const TensorType> Parser::tensor_type_() {
  expect("[", "after 'tensor'");
  auto t = make<TensorType>();
  t->dims_known = true;
  bool dims_follow = true;
  if (peek().word("rank") && peek(1).is("=")) {
    take();
    take();
    t->rank = int_value("a rank");
    if (t->rank < 0 || t->rank > kMaxRank) fail("this rank is too large", cat("0 to ", kMaxRank));
    t->dims_known = t->rank == 0;
  } else if (accept("*")) {
    t->dims_known = false;
  } else if (tensor_element_type(peek())) {
    t->rank = 0;
    dims_follow = false;
  } else {
    std::vector<Dim> sizes;
    do {
      const Token at = peek();
      if (!sizes.empty() && tensor_element_type(at)) {
        fail_at(at, "a comma stands before the element type", "';', as in tensor[n, 4; f32]");
      }
      sizes.push_back(dim());
      if (!may_be_size(sizes.back())) fail_at(at, "a size is not negative");
    } while (accept(","));
    if (sizes.size() > static_cast<size_t>(kMaxRank)) {
      fail("this tensor has too many dimensions", cat("at most ", kMaxRank));
    }
    t->rank = static_cast<int64_t>(sizes.size());
    t->dims = Array<Dim>(sizes);
  }
  if (dims_follow) expect(";", "between sizes and element type");
  t->dtype = dtype();
  if (accept(";")) {
    if (!accept_word("device")) fail("'device' is missing", "device=1");
    expect("=", "after 'device'");
    t->device = int_value("a device");
    if (t->device < 0) fail("a device can't be negative");
  }
  expect("]", "after the element type");
  return t;
}

Array<String> Parser::type_params() {
  Array<String> out;
  if (!accept("[")) return out;
  list("]", "after type parameters", [&] {
    const Token& t = peek();
    if (t.kind != TokenKind::kWord || is_reserved(t.text)) {
      fail("the name of a type parameter is missing", "a word such as T");
    }
    if (!type_vars_.insert(t.text).second) {
      fail(cat("the type parameter ", t.text, " is already defined"));
    }
    out.push_back(String(take().text));
  });
  return out;
}

void Parser::forget_type_params(const Array<String>& names) {
  for (const String& name : names) type_vars_.erase(name.view());
}

TypeRef Parser::type() {
  Nest nest(this, &type_depth_);
  TypeRef t = plain_type();
  if (!(peek().is("=") && peek(1).is("["))) return t;
  // Known elements: `= [m, 4]`.
  Token at = peek();
  take();
  std::vector<Dim> values = dims("before elements");
  if (const auto* x = type_as<TensorType>(t)) {
    bool integers = x->dtype.is_int() || x->dtype.is_bool();
    bool fits = x->dims_known && x->rank <= 1 &&
                (x->rank == 0 ? Dim(1) : x->dims[0]).is_const(static_cast<int64_t>(values.size()));
    if (!integers || !fits || values.size() > static_cast<size_t>(kMaxCarriedValues)) {
      fail_at(at, cat(to_text(t), " can't have these elements"),
              cat("an integer tensor of rank 0 or 1 with as many elements, ", kMaxCarriedValues,
                  " at most"));
    }
    return with_values(share(x), values);
  }
  const auto* s = type_as<ScalarType>(t);
  if (!s || s->dtype != i64 || values.size() != 1) {
    fail_at(at, cat(to_text(t), " can't have these elements"), "one element of an i64");
  }
  auto out = make<ScalarType>(*s);
  out->value_known = true;
  out->value = values[0];
  return out;
}

TypeRef Parser::plain_type() {
  const Token t = peek();
  if (accept("(")) {
    std::vector<TypeRef> fields;
    list(")", "after a tuple's types", [&] { fields.push_back(type()); });
    return tuple_type(fields);
  }
  if (t.kind != TokenKind::kWord) fail("a type is missing", "tensor[...], i64, (T, U), fn(T) -> U");
  take();
  if (t.text == "tensor") return tensor_type_();
  if (t.text == "shape") {
    expect("[", "after 'shape'");
    auto s = make<ShapeType>();
    if (accept("*")) {
    } else if (peek().word("rank") && peek(1).is("=")) {
      take();
      take();
      s->rank = int_value("a rank");
      if (s->rank < 0 || s->rank > kMaxRank) fail("this rank is too large", cat("0 to ", kMaxRank));
    } else {
      s->dims_known = true;
      std::vector<Dim> sizes;
      list("]", "after sizes", [&] { sizes.push_back(dim()); });
      if (sizes.size() > static_cast<size_t>(kMaxRank)) {
        fail_at(t, "this shape has too many sizes", cat("at most ", kMaxRank));
      }
      s->rank = static_cast<int64_t>(sizes.size());
      s->dims = Array<Dim>(sizes);
      return s;
    }
    expect("]", "after the rank");
    return s;
  }
  if (t.text == "array") {
    expect("[", "after 'array'");
    TypeRef element = type();
    expect("]", "after the element type");
    return array_type(element);
  }
  if (t.text == "opaque") {
    expect("[", "after 'opaque'");
    auto o = make<OpaqueType>();
    o->key = expect_kind(TokenKind::kString, "a key in quotes");
    expect("]", "after the key");
    return o;
  }
  if (t.text == "fn") {
    auto f = make<FunctionType>();
    f->type_params = type_params();
    expect("(", "before a function's parameters");
    list(")", "after a function's parameters", [&] { f->params.push_back(type()); });
    expect("->", "before a function's result");
    f->result = type();
    forget_type_params(f->type_params);
    return f;
  }
  if (auto d = scalar_element_type(t)) return scalar_type(*d);
  if (auto d = element_type(t)) {
    throw error_at(t, cat("there are no scalars of ", to_text(*d)))
        .help(cat("tensor[", to_text(*d), "] has one element"));
  }
  if (type_vars_.contains(t.text)) return type_var(t.text);
  if (t.text == "string") return string_type();
  auto arity = adt_arity_.find(t.text);
  if (arity == adt_arity_.end()) {
    Error e = error_at(t, cat("there is no type '", t.text, "'"));
    std::vector<std::string> names = {"tensor", "shape", "array", "opaque", "fn",
                                      "bool",   "i64",   "f32",   "f64"};
    for (std::string_view name : type_vars_) names.emplace_back(name);
    std::vector<std::string> own;
    for (const auto& [name, _] : adt_arity_) own.emplace_back(name);
    names.insert(names.end(), own.begin(), own.end());
    e.expected(cat("a type such as i64 or tensor[n; f32], or a data type: ", some_of(own)));
    suggest_word(&e, t.text, kTypesElsewhere, names);
    throw e;
  }
  std::vector<TypeRef> args;
  if (accept("[")) list("]", "after type arguments", [&] { args.push_back(type()); });
  if (args.size() != arity->second) {
    fail_at(t, cat("the type ", t.text, " has the wrong number of type arguments"),
            cat(arity->second, ", not ", args.size()));
  }
  return adt_type(t.text, args);
}

}  // namespace tenon::graph

#include "driver/build_functions.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "graph/ir/check.h"
#include "graph/ir/expected_types.h"
#include "graph/ir/op.h"
#include "graph/ir/pattern.h"
#include "graph/ir/text.h"
#include "graph/ir/typed_text.h"
#include "graph/ir/value_words.h"
#include "object/reflect.h"
#include "object/shape.h"

namespace tenon::driver {
namespace {

using graph::Operand;

[[noreturn]] void fail(const char* wanted, const Any& found) {
  throw Error(ErrorKind::Usage, cat("this is not ", wanted)).found(repr(found, 200));
}

graph::Builder& builder_of(const BuilderRef& builder) {
  if (!builder) throw Error(ErrorKind::Usage, "the builder is none");
  return builder->builder;
}

Operand operand_of(const Any& value) {
  if (value.is<Operand>()) return value.as<Operand>();  // none is an operand that is left out
  return build_constant(value);
}

// The value as a scalar of the type; null if that can't hold it.
Operand scalar_of(DataType dtype, const Any& value) {
  const bool is_integer = value.type_index == TypeIndex::Int;
  if (dtype.is_float() && (is_integer || value.type_index == TypeIndex::Float)) {
    return graph::constant_float(dtype, value.as<double>());
  }
  if (dtype.is_bool() && value.type_index == TypeIndex::Bool) {
    return graph::constant_bool(value.as<bool>());
  }
  if (!dtype.is_int() || !is_integer) return nullptr;
  const auto number = value.as<int64_t>();
  const bool fits = wrap_to(dtype, number) == number && (dtype != u64 || number >= 0);
  return fits ? graph::constant_int(number, dtype) : nullptr;
}

// The same where the type is expected: a host's number becomes a scalar of it, as a literal in text
// does.
Operand operand_of(const Any& value, const graph::TypeRef& expected) {
  const auto* scalar = expected.as<graph::ScalarType>();
  const Operand number = scalar ? scalar_of(scalar->dtype, value) : nullptr;
  return number ? number : operand_of(value);
}

std::vector<Operand> operands_of(const Array<Any>& values) {
  std::vector<Operand> out;
  for (const Any& value : values) out.push_back(operand_of(value));
  return out;
}

bool is_f32(const Any& value) {
  if (!value.is<Operand>() || value.is_none()) return false;
  const graph::TypeRef type = graph::type_of(value.as<Operand>());
  const auto* tensor = type.as<graph::TensorType>();
  const auto* scalar = type.as<graph::ScalarType>();
  return (tensor && tensor->dtype == f32) || (scalar && scalar->dtype == f32);
}

// The same, of an operator: a host's number beside an f32 operand is f32, as 2.0 is in text.
std::vector<Operand> operator_operands(const Array<Any>& values) {
  const bool has_f32 = std::ranges::any_of(values, is_f32);
  std::vector<Operand> out;
  for (const Any& value : values) {
    const bool is_number = has_f32 && value.type_index == TypeIndex::Float;
    out.push_back(is_number ? graph::constant_float(f32, value.as<double>()) : operand_of(value));
  }
  return out;
}

graph::TypeRef type_of_value(const BuilderRef& builder, const Any& type) {
  if (type.is<String>()) {
    builder_of(builder);
    return graph::parse_type(type.as<String>(), builder->types);
  }
  if (type.is_none() || !type.is<graph::TypeRef>()) fail("a type, nor the text of one", type);
  return type.as<graph::TypeRef>();
}

std::vector<graph::TypeRef> types_of(const BuilderRef& builder, const Array<Any>& types) {
  std::vector<graph::TypeRef> out;
  for (const Any& type : types) out.push_back(type_of_value(builder, type));
  return out;
}

Dim size_of(const Any& size) {
  if (size.type_index == TypeIndex::Int) return Dim(size.as<int64_t>());
  if (!size.is<String>()) fail("a size: an integer, or text such as \"2*n\"", size);
  return graph::parse_size(size.as<String>());
}

std::vector<Dim> sizes_of(const Array<Any>& sizes) {
  std::vector<Dim> out;
  for (const Any& size : sizes) out.push_back(size_of(size));
  return out;
}

std::vector<std::string> names_of(const Array<String>& names) {
  return {names.begin(), names.end()};
}

template <class M>
M map_or_empty(const Any& given, const char* wanted) {
  if (given.is_none()) return {};
  if (!given.is<M>()) fail(wanted, given);
  return given.as<M>();
}

// An operator's attributes as hosts write them: sizes are also integers and text, dtypes also
// names.
graph::Attrs attributes_of(const String& op, const Any& given) {
  auto attrs = map_or_empty<graph::Attrs>(given, "a map of attributes");
  const graph::Operator* entry = graph::OperatorTable::global().find(op);
  if (!entry) return attrs;  // an error of the builder
  for (const graph::AttrSpec& spec : entry->attrs) {
    const Any* found = attrs.find(spec.name);
    if (!found) continue;
    const Any value = *found;
    const bool is_text = value.is<String>();
    if (spec.kind == graph::AttrKind::kDim && (is_text || value.type_index == TypeIndex::Int)) {
      attrs.set(spec.name, Any(size_of(value)));
    } else if (spec.kind == graph::AttrKind::kDims && value.is<Array<Any>>() &&
               !value.is<Array<Dim>>()) {
      const std::vector<Dim> sizes = sizes_of(value.as<Array<Any>>());
      attrs.set(spec.name, Any(Array<Dim>(sizes.begin(), sizes.end())));
    } else if (spec.kind == graph::AttrKind::kDType && is_text) {
      const auto dtype = parse_dtype(value.as<String>().view());
      if (!dtype) fail("a dtype's name, such as \"f32\"", value);
      attrs.set(spec.name, Any(*dtype));
    }
  }
  return attrs;
}

void need(const Function& function, const char* what) {
  if (!function) throw Error(ErrorKind::Usage, cat(what, " is none, not a function"));
}

// A host's function from an array of variables to an operand.
graph::Builder::LoopBody body_of(const Function& function, const char* what) {
  need(function, what);
  return [function](const std::vector<Operand>& variables) {
    return operand_of(function(Array<Operand>(variables.begin(), variables.end())));
  };
}

graph::CheckKind check_kind(const String& kind) {
  if (kind == "equal") return graph::CheckKind::kEqual;
  if (kind == "less_equal") return graph::CheckKind::kLessEqual;
  if (kind == "broadcast") return graph::CheckKind::kBroadcast;
  throw Error(ErrorKind::Usage, "this is not a kind of check")
      .found(quoted(kind))
      .expected("\"equal\", \"less_equal\" or \"broadcast\"");
}

}  // namespace

void register_build_types() {
  static const TypeInfo builder = {BuilderObj::kTypeIndex,
                                   BuilderObj::kTypeLast,
                                   "compiler.Builder",
                                   &Object::type_info(),
                                   sizeof(BuilderObj),
                                   0,
                                   {},
                                   nullptr};
  register_types({&builder});
}

graph::TypeRef build_type(const String& text) {
  return graph::parse_type(text);
}

graph::TypeRef build_type_of(const String& text, const Any& types) {
  return graph::parse_type(text, map_or_empty<DataTypes>(types, "a map of data types"));
}

DataTypes build_types(const String& text) {
  return graph::parse_module(text, "types")->adts;
}

Operand build_constant(const Any& value) {
  switch (value.type_index) {
    case TypeIndex::Int:
      return graph::constant_int(value.as<int64_t>());
    case TypeIndex::Bool:
      return graph::constant_bool(value.as<bool>());
    case TypeIndex::Float:
      return graph::constant_float(f64, value.as<double>());
    case TypeIndex::Shape:
      return graph::constant_shape(value.as<Shape>());
    case TypeIndex::Tensor:
      return graph::constant(value.as<Tensor>());
    default:
      if (value.is<String>()) return graph::constant_string(value.as<String>());
      fail("an operand, nor a value that a constant can have", value);
  }
}

BuilderRef build_begin(const Any& globals) {
  constexpr const char* kGlobals =
      "a map from functions to their types, and from data types to their definitions";
  graph::Signatures signatures;
  DataTypes types;
  for (const auto& [name, known] : map_or_empty<Map<String, Any>>(globals, kGlobals)) {
    if (!known.is_none() && known.is<Ref<const graph::AdtDefinition>>()) {
      const auto adt = known.as<Ref<const graph::AdtDefinition>>();
      signatures.add_type(adt);
      types.set(name, adt);
    } else if (!known.is_none() && known.is<graph::TypeRef>()) {
      signatures.functions.set(name, known.as<graph::TypeRef>());
    } else {
      fail(kGlobals, known);
    }
  }
  auto builder = make<BuilderObj>(std::move(signatures), std::move(types));
  builder->builder.at(Span::node("(built)"));
  return builder;
}

void build_at(const BuilderRef& builder, const String& node) {
  builder_of(builder).at(Span::node(node.str()));
}

Operand build_param(const BuilderRef& builder, const String& name, const Any& type) {
  return builder_of(builder).param(name, type_of_value(builder, type));
}

Operand build_op(const BuilderRef& builder, const String& op, const Array<Any>& arguments,
                 const Any& attributes) {
  if (graph::is_value_word(op.view())) {
    std::vector<Operand> operands;
    for (const Any& argument : arguments) {
      operands.push_back(operand_of(argument, graph::expected_of_value_word(op.view(), operands)));
    }
    return builder_of(builder).bind(graph::value_call(op.view(), operands));
  }
  return builder_of(builder).op(op, operator_operands(arguments), attributes_of(op, attributes));
}

Operand build_call(const BuilderRef& builder, const String& function, const Array<Any>& arguments) {
  return builder_of(builder).call_global(function, operands_of(arguments));
}

Operand build_call_packed(const BuilderRef& builder, const String& function,
                          const Array<Any>& arguments, const Any& result) {
  return builder_of(builder).call_packed(function, operands_of(arguments),
                                         type_of_value(builder, result));
}

Operand build_call_closure(const BuilderRef& builder, const Any& closure,
                           const Array<Any>& arguments) {
  return builder_of(builder).call_closure(operand_of(closure), operands_of(arguments));
}

Operand build_tuple(const BuilderRef& builder, const Array<Any>& fields) {
  return builder_of(builder).tuple(operands_of(fields));
}

Operand build_field(const BuilderRef& builder, const Any& tuple, int64_t index) {
  return builder_of(builder).field(operand_of(tuple), index);
}

Operand build_match_shape(const BuilderRef& builder, const Any& value, const Array<Any>& sizes) {
  return builder_of(builder).match_shape(operand_of(value), sizes_of(sizes));
}

Operand build_match_elements(const BuilderRef& builder, const Any& value, const Array<Any>& sizes) {
  return builder_of(builder).match_elements(operand_of(value), sizes_of(sizes));
}

void build_check(const BuilderRef& builder, const String& kind, const Any& left, const Any& right,
                 const String& message) {
  builder_of(builder).check(check_kind(kind), size_of(left), size_of(right), message);
}

Operand build_if(const BuilderRef& builder, const Any& condition, const Function& then,
                 const Function& otherwise) {
  need(then, "the first arm");
  need(otherwise, "the second arm");
  return builder_of(builder).if_(
      operand_of(condition), [&] { return operand_of(then()); },
      [&] { return operand_of(otherwise()); });
}

Operand build_loop(const BuilderRef& builder, const Array<String>& names, const Array<Any>& types,
                   const Array<Any>& init, const Function& condition, const Function& body) {
  if (names.size() != types.size() || names.size() != init.size()) {
    throw Error(ErrorKind::Usage, "a loop needs a type and an initial value for each variable")
        .found(cat(names.size(), " names, ", types.size(), " types, ", init.size(), " values"));
  }
  return builder_of(builder).loop(names_of(names), types_of(builder, types), operands_of(init),
                                  body_of(condition, "the loop's condition"),
                                  body_of(body, "the loop's body"));
}

Operand build_function(const BuilderRef& builder, const String& self, const Array<String>& names,
                       const Array<Any>& types, const Any& result, const Function& body) {
  if (names.size() != types.size()) {
    throw Error(ErrorKind::Usage, "a function needs a type for each parameter")
        .found(cat(names.size(), " names, ", types.size(), " types"));
  }
  return builder_of(builder).function(self, names_of(names), types_of(builder, types),
                                      type_of_value(builder, result), body_of(body, "the body"));
}

namespace {

// Reads a pattern: `_`, a variable's name, a number, true, false, `Node(l, x, _)`, `(a, None)`.
// Variables are made in the builder's open block.
class PatternReader {
 public:
  PatternReader(std::string_view text, BuilderObj* builder, std::vector<Operand>* variables)
      : text_(text), builder_(*builder), variables_(*variables) {}

  graph::PatternRef whole(const graph::TypeRef& type) {
    graph::PatternRef out = pattern(type);
    if (peek() != '\0') fail("the end of the pattern");
    return out;
  }

 private:
  static constexpr int kDeepest = 100;

  [[noreturn]] void fail(const char* expected) const {
    throw Error(ErrorKind::Usage, cat("this is not a pattern: ", quoted(text_)))
        .found(at_ < text_.size() ? quoted(text_.substr(at_)) : "the end", cat("column ", at_ + 1))
        .expected(expected);
  }
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    peek();
    const size_t begin = at_;
    const auto is_part = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
    while (at_ < text_.size() && is_part(static_cast<unsigned char>(text_[at_]))) ++at_;
    if (at_ == begin) fail("a constructor, a variable, a number, a tuple or _");
    return text_.substr(begin, at_ - begin);
  }

  void fields(const Array<graph::TypeRef>& types, graph::Pattern* to) {
    while (!take(')')) {
      if (!to->fields.empty() && !take(',')) fail("',' or ')'");
      if (!to->fields.empty() && take(')')) break;
      if (to->fields.size() == types.size()) fail("')' after all of the fields");
      to->fields.push_back(pattern(types[to->fields.size()]));
    }
    if (to->fields.size() != types.size()) fail("a pattern for each of the fields");
  }

  graph::PatternRef pattern(const graph::TypeRef& type) {
    if (++depth_ > kDeepest) fail("at most 100 patterns in each other");
    auto p = make<graph::Pattern>();
    if (take('(')) {
      p->kind = graph::PatternKind::kTuple;
      fields(graph::tuple_parts(type), p.get());
    } else if (const bool is_variable = take('%'); !is_variable && peek() == '_' && is_any()) {
      ++at_;
    } else {
      const std::string_view name = word();
      const bool is_number = name[0] == '-' || (name[0] >= '0' && name[0] <= '9');
      if (!is_variable && (is_number || name == "true" || name == "false")) {
        p->kind = graph::PatternKind::kConstant;
        p->constant = constant(name);
        graph::require_constant(*p, type);
      } else if (!is_variable && name[0] >= 'A' && name[0] <= 'Z') {
        p->kind = graph::PatternKind::kConstructor;
        p->constructor = name;
        const Array<graph::TypeRef> types =
            graph::constructor_parts(name, type, builder_.signatures);
        if (take('(')) {
          fields(types, p.get());
        } else if (!types.empty()) {
          fail("'(' and a pattern for each of the fields");
        }
      } else {
        p->kind = graph::PatternKind::kVariable;
        p->var = builder_.builder.block_var(name, type);
        variables_.emplace_back(p->var);
      }
    }
    --depth_;
    return p;
  }
  // Whether `_` stands alone.
  bool is_any() const {
    const size_t next = at_ + 1;
    return next == text_.size() ||
           !(std::isalnum(static_cast<unsigned char>(text_[next])) || text_[next] == '_');
  }
  Operand constant(std::string_view name) {
    if (name == "true" || name == "false") return graph::constant_bool(name == "true");
    int64_t value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error != std::errc() || end != name.data() + name.size()) fail("an i64 as a number");
    return graph::constant_int(value);
  }

  std::string_view text_;
  BuilderObj& builder_;
  std::vector<Operand>& variables_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Operand build_construct(const BuilderRef& builder, const String& constructor,
                        const Array<Any>& fields, const Any& type) {
  graph::Builder& b = builder_of(builder);
  const graph::ConstructorRef ref = builder->signatures.find_constructor(constructor.view());
  if (!ref.adt) {
    throw Error(ErrorKind::Usage, cat("no data type has a constructor ", quoted(constructor)))
        .help("make its data type known before: tenon.build_types");
  }
  const Array<String>& params = ref.adt->type_params;
  std::vector<graph::TypeRef> variables;
  for (const String& param : params) variables.push_back(graph::type_var(param));
  const graph::TypeRef expected = type.is_none() ? graph::TypeRef() : type_of_value(builder, type);
  graph::ExpectedTypes types(params, ref.constructor->fields,
                             graph::adt_type(ref.adt->name, variables), expected);
  auto made = make<graph::Construct>();
  made->constructor = constructor;
  for (const Any& field : fields) {
    const size_t index = made->fields.size();
    made->fields.push_back(operand_of(field, types.of(index)));
    types.add(index, made->fields.back());
  }
  made->type_args = types.type_args();
  if (made->type_args.empty() && !params.empty() &&
      fields.size() == ref.constructor->fields.size()) {
    throw Error(ErrorKind::Usage,
                cat("nothing determines the type arguments of ", constructor.view()))
        .help(cat("give the type, such as \"", ref.adt->name.view(), "[i64]\""));
  }
  return b.bind(made);
}

Operand build_match(const BuilderRef& builder, const Any& value, const Array<String>& patterns,
                    const Array<Function>& arms) {
  graph::Builder& b = builder_of(builder);
  if (patterns.size() != arms.size()) {
    throw Error(ErrorKind::Usage, "a match needs an arm for each pattern")
        .found(cat(patterns.size(), " patterns, ", arms.size(), " arms"));
  }
  const Span at = b.span();
  auto match = make<graph::Match>();
  match->value = operand_of(value);
  for (size_t i = 0; i < patterns.size(); ++i) {
    need(arms[i], "an arm");
    b.begin_block();
    std::vector<Operand> variables;
    match->patterns.push_back(PatternReader(patterns[i].view(), builder.get(), &variables)
                                  .whole(graph::type_of(match->value)));
    // Numbers are of the type of the first arm.
    const graph::TypeRef first = i == 0 ? graph::TypeRef() : graph::type_of(match->arms[0]->result);
    const Any result = arms[i](Array<Operand>(variables.begin(), variables.end()));
    match->arms.push_back(b.finish_block(operand_of(result, first)));
    b.at(at);
  }
  return b.bind(match);
}

Operand build_closure(const BuilderRef& builder, const String& function,
                      const Array<Any>& arguments, const Array<Any>& type_arguments) {
  auto closure = make<graph::Closure>();
  closure->function = function;
  for (const Operand& argument : operands_of(arguments)) closure->captures.push_back(argument);
  for (const graph::TypeRef& type : types_of(builder, type_arguments)) {
    closure->type_args.push_back(type);
  }
  return builder_of(builder).bind(closure);
}

Operand build_array(const BuilderRef& builder, const Any& type, const Array<Any>& elements) {
  graph::Builder& b = builder_of(builder);
  const graph::TypeRef element = type_of_value(builder, type);
  Operand out = b.bind(graph::empty_array(element));
  for (const Any& value : elements) {
    out = b.bind(graph::value_call("array_push", {out, operand_of(value, element)}));
  }
  return out;
}

Operand build_size(const BuilderRef& builder, const Any& size) {
  auto made = make<graph::Size>();
  made->size = size_of(size);
  return builder_of(builder).bind(made);
}

Operand build_scalar(const String& dtype, const Any& value) {
  const auto type = parse_dtype(dtype.view());
  const Operand scalar = type && is_tensor_dtype(*type) ? scalar_of(*type, value) : nullptr;
  if (scalar) return scalar;
  throw Error(ErrorKind::Usage, "this is not a scalar of that element type")
      .found(cat(repr(value, 200), " of ", quoted(dtype)))
      .expected(
          "a number that an element of this type can have: 3 of i8, 0.5 of f16, True of bool");
}

Operand build_bind(const BuilderRef& builder, const graph::ExprRef& value, const String& name) {
  if (!value) throw Error(ErrorKind::Usage, "the right-hand side is none");
  return builder_of(builder).bind(value, name);
}

Any build_node(const String& type_key, const Map<String, Any>& fields) {
  const TypeInfo* type = find_type(type_key.view());
  if (!type || !type->make) {
    throw Error(ErrorKind::Usage, cat("no type ", quoted(type_key), " can be made"));
  }
  std::vector<const Field*> known = all_fields(*type);
  std::erase_if(known, [](const Field* field) { return field->flags & kHidden; });
  Ref<Object> made = type->make();
  for (const auto& [name, value] : fields) {
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&, n = name](const Field* f) { return n == f->name; });
    if (at == known.end()) {
      std::vector<std::string> names;
      names.reserve(known.size());
      for (const Field* field : known) names.emplace_back(field->name);
      throw Error(ErrorKind::Usage, cat(type_key.view(), " has no field ", quoted(name)))
          .expected(join(names, ", "));
    }
    set_field(*made, **at, value);
  }
  complete(*made);
  return made;
}

graph::FunctionRef build_finish(const BuilderRef& builder, const String& name, const Any& result,
                                const Any& attributes) {
  return builder_of(builder).finish(name, operand_of(result),
                                    map_or_empty<graph::Attrs>(attributes, "a map of attributes"));
}

graph::Module build_module(const Map<String, graph::FunctionRef>& functions, const Any& kernels,
                           const Any& types) {
  graph::Module module = graph::make_module(
      functions, map_or_empty<Map<String, loop::KernelInterfaceRef>>(kernels, "a map of kernels"),
      map_or_empty<Map<String, Ref<const graph::AdtDefinition>>>(types, "a map of data types"));
  graph::check_module(module);
  return module;
}

}  // namespace tenon::driver

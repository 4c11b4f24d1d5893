#include "driver/build_functions.h"

#include <algorithm>
#include <unordered_set>

#include "driver/host_options.h"
#include "graph/ir/calls.h"
#include "graph/ir/check.h"
#include "graph/ir/expected_types.h"
#include "graph/ir/name_text.h"
#include "graph/ir/op.h"
#include "graph/ir/typed_text.h"
#include "graph/ir/value_words.h"
#include "graph/ir/walk.h"
#include "object/reflect.h"
#include "object/shape.h"

namespace tenon::driver {
namespace {

using graph::Operand;

[[noreturn]] void fail(const char* wanted, const Any& found) {
  throw Error(ErrorKind::Usage, cat("this is not ", wanted)).found(repr(found, 200));
}

BuilderObj& module_of(const BuilderRef& builder) {
  if (!builder) throw Error(ErrorKind::Usage, "the builder is none");
  return *builder;
}

// What the functions of the module may name.
graph::Signatures signatures_of(const BuilderObj& module) {
  graph::Signatures known;
  for (const auto* functions :
       {&module.defined.functions, &module.defined.imported, &module.functions}) {
    for (const auto& [name, f] : *functions) known.functions.set(name, graph::type_of(*f));
  }
  for (const auto& [name, type] : module.declared) known.functions.set(name, type);
  known.written = module.defined.written;
  known.kernels = module.defined.kernels;
  for (const auto& [name, adt] : module.defined.adts) known.add_type(adt);
  return known;
}

// Lets the function that is being built name what was added to the module.
void tell_function(BuilderObj& module) {
  if (module.function) module.function->set_signatures(module.known);
}

// The builder of the function, which begins unless one is being built.
graph::Builder& builder_of(const BuilderRef& builder) {
  BuilderObj& module = module_of(builder);
  if (!module.function) {
    module.function.emplace(module.known);
    module.function->at(Span::node("(built)"));
  }
  return *module.function;
}

// The name of a function as the module has it: "std/list.map" for "l.map".
String full_name(const BuilderObj& module, const String& function) {
  const std::string_view name = function.view();
  const size_t dot = std::min(name.find('.'), name.size());
  const auto import = module.defined.prefixes.find(name.substr(0, dot));
  if (dot == name.size() || import == module.defined.prefixes.end()) return function;
  return cat(import->second, name.substr(dot + 1));
}

Operand operand_of(const Any& value) {
  if (!value.is<Operand>()) return build_constant(value);
  Operand operand = value.as<Operand>();  // none is an operand that is left out
  if (operand && !operand.is<graph::Var>() && !operand.is<graph::Constant>()) {
    throw Error(ErrorKind::Usage, "an operand is a variable or a constant")
        .found(type_name(value.type_index))
        .help("bind it to a variable first: tenon.build_bind");
  }
  return operand;
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

// The operand where that type, which may be null, is expected: a host's number becomes a scalar of
// it, as a literal in text does, and an array a tuple.
Operand operand_of(graph::Builder& builder, const Any& value, const graph::TypeRef& expected,
                   int depth = 0) {
  if (!value.is<Operand>() && value.is<Array<Any>>()) {
    if (depth == graph::kMaxNesting) {
      throw Error(ErrorKind::Usage, cat("tuples are nested deeper than ", depth, " levels"));
    }
    const auto* tuple = expected.as<graph::TupleType>();
    std::vector<Operand> fields;
    for (const Any& field : value.as<Array<Any>>()) {
      const size_t i = fields.size();
      fields.push_back(operand_of(builder, field,
                                  tuple && i < tuple->fields.size() ? tuple->fields[i] : nullptr,
                                  depth + 1));
    }
    return builder.tuple(fields);
  }
  const auto* scalar = expected.as<graph::ScalarType>();
  const Operand number = scalar ? scalar_of(scalar->dtype, value) : nullptr;
  return number ? number : operand_of(value);
}

std::vector<Operand> operands_of(graph::Builder& builder, const Array<Any>& values) {
  std::vector<Operand> out;
  for (const Any& value : values) out.push_back(operand_of(builder, value, nullptr));
  return out;
}

// The arguments of a function or the fields of a constructor, which are added to `types`.
std::vector<Operand> operands_of(graph::Builder& builder, const Array<Any>& values,
                                 graph::ExpectedTypes* types) {
  std::vector<Operand> out;
  for (const Any& value : values) {
    const size_t i = out.size();
    out.push_back(operand_of(builder, value, types->of(i)));
    types->add(i, out.back());
  }
  return out;
}

// Null for an unknown function.
graph::TypeRef type_of_global(const graph::Builder& builder, const String& function) {
  const graph::TypeRef* known = builder.signatures().functions.find(function);
  return known ? *known : nullptr;
}

// The arguments of a function of that type, with the type arguments that a host states; of any
// other, none is expected.
std::vector<Operand> arguments_of(graph::Builder& builder, const Array<Any>& values,
                                  const graph::TypeRef& callee,
                                  const Array<graph::TypeRef>& type_arguments = {}) {
  const auto* function = callee.as<graph::FunctionType>();
  if (!function) return operands_of(builder, values);
  graph::ExpectedTypes types(function->type_params, function->params, function->result, nullptr);
  types.state(type_arguments);
  return operands_of(builder, values, &types);
}

bool is_f32(const Any& value) {
  if (!value.is<Operand>() || value.is_none()) return false;
  const graph::TypeRef type = graph::type_of(operand_of(value));
  const auto* tensor = type.as<graph::TensorType>();
  const auto* scalar = type.as<graph::ScalarType>();
  return (tensor && tensor->dtype == f32) || (scalar && scalar->dtype == f32);
}

// The operands of an operator. A host's float is f64, but f32 beside an f32 operand.
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
    const BuilderObj& module = module_of(builder);
    return graph::parse_type(type.as<String>(), module.defined.adts, module.type_params);
  }
  if (type.is_none() || !type.is<graph::TypeRef>()) fail("a type or the text of one", type);
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

// A host's function from an array of variables to an operand of that type, if it isn't null.
graph::Builder::LoopBody body_of(graph::Builder& builder, const Function& function,
                                 const char* what, const graph::TypeRef& expected) {
  need(function, what);
  return [&builder, function, expected](const std::vector<Operand>& variables) {
    const Any made = function(Array<Operand>(variables.begin(), variables.end()));
    return operand_of(builder, made, expected);
  };
}

// Throws if the text isn't a word that may name an import or a type parameter.
void require_word(const String& name, const char* of, const char* expected) {
  const std::string_view text = name.view();
  const bool is_word = graph::is_bare_name(text) && !(text[0] >= '0' && text[0] <= '9');
  if (is_word && !graph::is_reserved(text)) return;
  throw Error(ErrorKind::Usage, cat("this is not a name for ", of))
      .found(quoted(name.view()))
      .expected(expected);
}

// Makes known what the text defines. The module stays as it is if it is wrong.
void define(BuilderObj& module, std::string_view text,
            const std::vector<std::string>& import_paths = {}) {
  module.defined = graph::parse_definitions(text, "definitions", import_paths, module.defined,
                                            module.known.functions);
  module.known = signatures_of(module);
  tell_function(module);
}

// Throws if a callback of `if`, `loop`, `match` or a function literal is running.
void require_no_callback(const BuilderObj& module) {
  if (!module.function || module.function->open_blocks() == 1) return;
  throw Error(ErrorKind::Usage, "a block of the function is still being built")
      .help("return from the callback that builds it first");
}

// Throws if a function of this name was built, defined or imported.
void require_new(const BuilderObj& module, const String& function) {
  if (!module.functions.contains(function) && !module.defined.functions.contains(function) &&
      !module.defined.imported.contains(function)) {
    return;
  }
  throw Error(ErrorKind::Usage, cat("there is a function '", printable(function), "' already"));
}

// Blocks of nodes that a host makes: what walks them recurses, and takes each for another.
class BlockNesting {
 public:
  void require(const graph::ExprRef& value, int depth) {
    if (depth > graph::kMaxNesting) {
      throw Error(ErrorKind::Usage,
                  cat("blocks are nested deeper than ", graph::kMaxNesting, " levels"));
    }
    if (!graph::is_right_hand_side(value)) return;  // an error of who takes it
    graph::for_each_block(value, [&](const graph::BlockRef& block) {
      if (!block || block->bindings.empty()) return;
      if (!seen_.insert(block.get()).second) {
        throw Error(ErrorKind::Usage, "a block is part of two right-hand sides")
            .help("make its bindings anew for each");
      }
      for (const auto& binding : block->bindings) {
        if (binding && binding->value) require(binding->value, depth + 1);
      }
    });
  }

 private:
  std::unordered_set<const graph::Block*> seen_;
};

graph::CheckKind check_kind(const String& kind) {
  const auto* const name = std::ranges::find(graph::kCheckNames, kind.view());
  if (name != std::end(graph::kCheckNames)) {
    return static_cast<graph::CheckKind>(name - std::begin(graph::kCheckNames));
  }
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
      fail("an operand or a value that a constant can have", value);
  }
}

BuilderRef build_begin() {
  return make<BuilderObj>();
}

void build_import(const BuilderRef& builder, const String& file, const String& name,
                  const Any& options) {
  BuilderObj& module = module_of(builder);
  HostOptions given(options);
  Source source;
  take_source_options(given, &source);
  given.require_all_taken();
  require_word(name, "an import", "a word such as l, for calls of l.map");
  define(module, cat("import ", quoted(file.view()), " as ", name.view()), source.import_path);
}

void build_define(const BuilderRef& builder, const String& text) {
  define(module_of(builder), text.view());
}

void build_declare(const BuilderRef& builder, const String& function, const Any& type) {
  BuilderObj& module = module_of(builder);
  const graph::TypeRef known = type_of_value(builder, type);
  if (!known.as<graph::FunctionType>()) {
    throw Error(ErrorKind::Usage,
                cat("'", printable(function), "' is declared, but not as a function"))
        .found(to_text(known))
        .expected("a function's type, such as fn(i64) -> i64");
  }
  require_new(module, function);
  module.declared.set(function, known);
  module.known.functions.set(function, known);
  tell_function(module);
}

void build_type_param(const BuilderRef& builder, const String& name) {
  BuilderObj& module = module_of(builder);
  require_word(name, "a type parameter", "a word such as T");
  if (std::ranges::find(module.type_params, name) != module.type_params.end()) {
    throw Error(ErrorKind::Usage, cat("the type parameter ", name.view(), " is already defined"));
  }
  module.type_params.push_back(name);
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
    graph::Builder& b = builder_of(builder);
    if (const auto attrs = map_or_empty<graph::Attrs>(attributes, "a map of attributes");
        !attrs.empty()) {
      throw Error(ErrorKind::Usage, cat(op.view(), " takes no attributes"))
          .found(quoted((*attrs.begin()).first));
    }
    std::vector<Operand> operands;
    for (const Any& argument : arguments) {
      operands.push_back(
          operand_of(b, argument, graph::expected_of_value_word(op.view(), operands)));
    }
    return b.bind(graph::value_call(op.view(), operands));
  }
  return builder_of(builder).op(op, operator_operands(arguments), attributes_of(op, attributes));
}

Operand build_call(const BuilderRef& builder, const String& function, const Array<Any>& arguments) {
  graph::Builder& b = builder_of(builder);
  const String name = full_name(*builder, function);
  return b.call_global(name, arguments_of(b, arguments, type_of_global(b, name)));
}

Operand build_call_packed(const BuilderRef& builder, const String& function,
                          const Array<Any>& arguments, const Any& result) {
  graph::Builder& b = builder_of(builder);
  return b.call_packed(function, operands_of(b, arguments), type_of_value(builder, result));
}

Operand build_call_closure(const BuilderRef& builder, const Any& closure,
                           const Array<Any>& arguments) {
  graph::Builder& b = builder_of(builder);
  const Operand callee = operand_of(closure);
  const graph::TypeRef type = callee ? graph::type_of(callee) : nullptr;
  return b.call_closure(callee, arguments_of(b, arguments, type));
}

Operand build_tuple(const BuilderRef& builder, const Array<Any>& fields) {
  graph::Builder& b = builder_of(builder);
  return b.tuple(operands_of(b, fields));
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
  graph::Builder& b = builder_of(builder);
  need(then, "the first arm");
  need(otherwise, "the second arm");
  graph::TypeRef first;
  const auto first_arm = [&] {
    const Operand result = operand_of(b, then(), nullptr);
    if (result) first = graph::type_of(result);
    return result;
  };
  return b.if_(operand_of(condition), first_arm, [&] { return operand_of(b, otherwise(), first); });
}

Operand build_loop(const BuilderRef& builder, const Array<String>& names, const Array<Any>& types,
                   const Array<Any>& init, const Function& condition, const Function& body) {
  if (names.size() != types.size() || names.size() != init.size()) {
    throw Error(ErrorKind::Usage, "a loop needs a type and an initial value for each variable")
        .found(cat(names.size(), " names, ", types.size(), " types, ", init.size(), " values"));
  }
  graph::Builder& b = builder_of(builder);
  const std::vector<graph::TypeRef> variables = types_of(builder, types);
  std::vector<Operand> first;
  for (size_t i = 0; i < init.size(); ++i) first.push_back(operand_of(b, init[i], variables[i]));
  return b.loop(names_of(names), variables, first,
                body_of(b, condition, "the loop's condition", nullptr),
                body_of(b, body, "the loop's body", graph::loop_type(variables)));
}

Operand build_function(const BuilderRef& builder, const String& self, const Array<String>& names,
                       const Array<Any>& types, const Any& result, const Function& body) {
  if (names.size() != types.size()) {
    throw Error(ErrorKind::Usage, "a function needs a type for each parameter")
        .found(cat(names.size(), " names, ", types.size(), " types"));
  }
  graph::Builder& b = builder_of(builder);
  const graph::TypeRef result_type = type_of_value(builder, result);
  return b.function(self, names_of(names), types_of(builder, types), result_type,
                    body_of(b, body, "the body", result_type));
}

Operand build_construct(const BuilderRef& builder, const String& constructor,
                        const Array<Any>& fields, const Any& type) {
  graph::Builder& b = builder_of(builder);
  const graph::ConstructorRef ref = b.signatures().find_constructor(constructor.view());
  if (!ref.adt) {
    throw Error(ErrorKind::Usage, cat("no data type has a constructor ", quoted(constructor)))
        .help("define its data type before: tenon.build_define");
  }
  const Array<String>& params = ref.adt->type_params;
  std::vector<graph::TypeRef> variables;
  for (const String& param : params) variables.push_back(graph::type_var(param));
  const graph::TypeRef expected = type.is_none() ? graph::TypeRef() : type_of_value(builder, type);
  graph::ExpectedTypes types(params, ref.constructor->fields,
                             graph::adt_type(ref.adt->name, variables), expected);
  auto made = make<graph::Construct>();
  made->constructor = constructor;
  for (const Operand& field : operands_of(b, fields, &types)) made->fields.push_back(field);
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
  auto match = make<graph::Match>();
  match->value = operand_of(value);
  graph::TypeRef first;  // the type of the first arm, which numbers of the others take
  for (size_t i = 0; i < patterns.size(); ++i) {
    need(arms[i], "an arm");
    const auto arm = [&] {
      std::vector<Operand> variables;
      const auto variable = [&](std::string_view name, const graph::TypeRef& type) {
        graph::VarRef made = b.block_var(name, type);
        variables.emplace_back(made);
        return made;
      };
      match->patterns.push_back(graph::parse_pattern(patterns[i], graph::type_of(match->value),
                                                     b.signatures(), variable));
      const Any result = arms[i](Array<Operand>(variables.begin(), variables.end()));
      return operand_of(b, result, first);
    };
    match->arms.push_back(b.block(arm));
    if (i == 0) first = graph::type_of(match->arms[0]->result);
  }
  return b.bind(match);
}

Operand build_closure(const BuilderRef& builder, const String& function,
                      const Array<Any>& arguments, const Array<Any>& type_arguments) {
  graph::Builder& b = builder_of(builder);
  auto closure = make<graph::Closure>();
  closure->function = full_name(*builder, function);
  closure->type_args = Array<graph::TypeRef>(types_of(builder, type_arguments));
  const graph::TypeRef type = type_of_global(b, closure->function);
  for (const Operand& argument : arguments_of(b, arguments, type, closure->type_args)) {
    closure->captures.push_back(argument);
  }
  return b.bind(closure);
}

Operand build_array(const BuilderRef& builder, const Any& type, const Array<Any>& elements) {
  graph::Builder& b = builder_of(builder);
  const graph::TypeRef element = type_of_value(builder, type);
  Operand out = b.bind(graph::empty_array(element));
  for (const Any& value : elements) {
    out = b.bind(graph::value_call("array_push", {out, operand_of(b, value, element)}));
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
  BlockNesting().require(value, 0);
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

void build_finish(const BuilderRef& builder, const String& name, const Any& result,
                  const Any& attributes) {
  graph::Builder& b = builder_of(builder);
  require_no_callback(*builder);
  require_new(*builder, name);
  const graph::TypeRef* declared = builder->declared.find(name);
  const auto* function = declared ? declared->as<graph::FunctionType>() : nullptr;
  const Operand made = operand_of(b, result, function ? function->result : nullptr);
  const auto attrs = map_or_empty<graph::Attrs>(attributes, "a map of attributes");
  const Array<String> type_params = builder->type_params;
  const graph::FunctionRef finished =
      function ? b.finish_as(name, made, function->result, attrs, type_params)
               : b.finish(name, made, attrs, type_params);
  build_discard(builder);
  const graph::TypeRef type = graph::type_of(*finished);
  if (function && !graph::same_type(type, *declared)) {
    throw Error(ErrorKind::Usage, cat("'", printable(name), "' is declared with another type"))
        .found(to_text(type))
        .expected(to_text(*declared));
  }
  builder->functions.set(name, finished);
  builder->known.functions.set(name, type);
}

void build_discard(const BuilderRef& builder) {
  BuilderObj& module = module_of(builder);
  require_no_callback(module);
  module.function.reset();
  module.type_params = {};
}

graph::Module build_module(const BuilderRef& builder) {
  const BuilderObj& module = module_of(builder);
  for (const auto& [name, type] : module.declared) {
    if (module.functions.contains(name)) continue;
    throw Error(ErrorKind::Usage, cat("'", printable(name), "' is declared but not built"))
        .help(cat("build a function of type ", to_text(type), ", and finish it with that name"));
  }
  Map<String, graph::FunctionRef> functions = module.defined.functions;
  for (const auto& [name, function] : module.functions) functions.set(name, function);
  const graph::Module made =
      graph::make_module(graph::reachable(functions, module.defined.imported),
                         module.defined.kernels, module.defined.adts);
  graph::check_module(made);
  return made;
}

}  // namespace tenon::driver

#include "import/onnx/custom_operator.h"

#include <algorithm>

#include "graph/ir/instantiate.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/text.h"
#include "import/onnx/count_nodes.h"
#include "import/onnx/custom_signature.h"
#include "object/reflect.h"
#include "object/registry.h"

namespace tenon::onnx {

namespace {

using graph::TypeRef;

[[noreturn]] void misfit(const NodeContext& cx, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorKind::Usage,
              cat("the node does not fit the signature of ", printable(op_text(cx.node()))))
      .found(printable(found))
      .expected(expected);
}

// ---- attributes ----

// The attribute as a value for the function that states the types.
Any value_of(const NodeContext& cx, const Attribute& a) {
  cx.ignore(a.name.c_str());
  switch (a.kind) {
    case Attribute::kFloat:
      return a.f;
    case Attribute::kInt:
      return a.i;
    case Attribute::kString:
      return String(a.s);
    case Attribute::kInts:
      return Tensor::copy_of(std::array{static_cast<int64_t>(a.ints.size())}, i64,
                             std::span<const int64_t>(a.ints));
    case Attribute::kFloats:
      return make_tensor(f32, {static_cast<int64_t>(a.floats.size())}, a.floats);
    case Attribute::kTensor:
      return cx.attr_tensor(a.name.c_str());
    default:
      break;
  }
  cx.unsupported(cat("attribute '", a.name, "' is not a number, text, list of numbers or tensor"));
}

// The attribute as an argument. `type` is the scalar type that the signature gives it, or null.
Operand argument_of(const NodeContext& cx, const std::string& name, const Any& value,
                    const graph::ScalarType* type) {
  if (value.is<Tensor>()) return graph::constant(value.as<Tensor>(), name);
  if (value.is<String>() && !type) return graph::constant_string(value.as<String>());
  const bool integer = value.type_index == TypeIndex::Int;
  const bool number = integer || value.type_index == TypeIndex::Float;
  if (number && type && type->dtype.is_float()) {
    return graph::constant_float(
        type->dtype, integer ? static_cast<double>(value.as<int64_t>()) : value.as<double>());
  }
  if (value.type_index == TypeIndex::Float && !type) {
    return graph::constant_float(f32, value.as<double>());
  }
  if (integer && type && type->dtype.is_bool()) {
    return graph::constant_bool(value.as<int64_t>() != 0);
  }
  if (integer && (!type || type->dtype == i64)) return graph::constant_int(value.as<int64_t>());
  if (value.type_index == TypeIndex::Bool && (!type || type->dtype.is_bool())) {
    return graph::constant_bool(value.as<bool>());
  }
  TENON_ASSERT(type, "an attribute of another kind than value_of returns");
  misfit(cx, cat("attribute '", name, "': ", repr(value, 200)),
         to_text(graph::scalar_type(type->dtype)));
}

// The node's attributes that the signature lists, by default all in the order of their names.
std::vector<std::pair<std::string, Any>> attributes_of(const NodeContext& cx,
                                                       const CustomSignature& signature) {
  std::vector<std::pair<std::string, Any>> out;
  if (!signature.attributes) {
    for (const Attribute& a : cx.node().attributes) out.emplace_back(a.name, value_of(cx, a));
    std::ranges::sort(out, {}, [](const auto& a) { return a.first; });
    return out;
  }
  for (const CustomAttribute& a : *signature.attributes) {
    if (const Attribute* given = cx.node().find(a.name)) {
      out.emplace_back(a.name, value_of(cx, *given));
    } else if (a.otherwise) {
      out.emplace_back(a.name, *a.otherwise);
    } else {
      misfit(cx, cat("no attribute '", a.name, "'"), "a value: the signature has no default");
    }
  }
  for (const Attribute& a : cx.node().attributes) {
    const auto same = [&](const CustomAttribute& known) { return known.name == a.name; };
    if (std::ranges::none_of(*signature.attributes, same)) {
      misfit(cx, cat("attribute '", a.name, "'"), "only attributes that the signature lists");
    }
  }
  return out;
}

// ---- the signature ----

// Asks the host for the signature of the node.
CustomSignature signature_of(const NodeContext& cx, const std::string& name) {
  const std::string stating = cat(name, ".signature");
  const Function function = find_function(stating);
  if (!function) {
    cx.unsupported(cat("the function ", name, " is registered, but not ", stating));
  }
  Array<Any> types;
  for (const Operand& x : cx.all()) types.push_back(x ? Any(graph::type_of(x)) : Any());
  Map<String, Any> attributes;
  for (const Attribute& a : cx.node().attributes) attributes.set(a.name, value_of(cx, a));
  const Any stated = function(types, attributes);
  if (stated.is<String>()) {
    const std::string text = stated.as<String>().str();
    if (text.starts_with('(')) return parse_signature(text);
    return {.any_inputs = true, .result = graph::parse_type(text)};
  }
  const bool is_type = !stated.is_none() && stated.is<TypeRef>();
  if (!is_type) {
    throw Error(ErrorKind::Usage,
                cat("the function ", stating, " returned neither text nor a type"))
        .found(repr(stated, 200))
        .expected("a signature, such as \"(tensor[n; f32]) -> tensor[n; f32]\", or a result type");
  }
  return {.any_inputs = true, .result = stated.as<TypeRef>()};
}

// ---- the call ----

// The node's inputs and attributes as arguments that fit the signature, whose symbols are bound to
// their sizes.
Operands arguments_of(NodeContext& cx, const CustomSignature& signature,
                      const std::vector<std::pair<std::string, Any>>& attributes,
                      const graph::Matching& bound) {
  const size_t inputs = cx.count();
  Operands out = cx.all();
  const auto type_at = [&](size_t i) {
    return i < signature.params.size() ? signature.params[i] : TypeRef();
  };
  for (size_t i = 0; i < inputs; ++i) {
    if (!type_at(i)) continue;
    if (!out[i]) misfit(cx, cat("no operand ", i), to_text(type_at(i)));
    out[i] = cx.b.refine(out[i], bound.apply(type_at(i)),
                         cat("operand ", i, " of ", op_text(cx.node())));
  }
  for (size_t i = 0; i < attributes.size(); ++i) {
    const TypeRef type = type_at(inputs + i);
    out.push_back(argument_of(cx, attributes[i].first, attributes[i].second,
                              type ? graph::type_as<graph::ScalarType>(type) : nullptr));
  }
  return out;
}

void check_counts(const NodeContext& cx, const CustomSignature& signature, size_t attributes,
                  size_t results) {
  const size_t inputs = cx.count(), params = signature.params.size();
  if (!signature.any_inputs) {
    const size_t typed = static_cast<size_t>(std::ranges::count_if(
        signature.params, [](const TypeRef& t) { return t.is<graph::ScalarType>(); }));
    if (inputs != params - typed) {
      misfit(cx, counted(inputs, "operand"), cat(params - typed));
    }
    if (typed > 0 && typed != attributes) {
      misfit(cx, counted(attributes, "attribute"), cat(typed, ", a scalar of the signature each"));
    }
  }
  if (cx.outputs() > results) {
    misfit(cx, counted(cx.outputs(), "output"), cat("at most ", results));
  }
}

std::vector<TypeRef> fields_of(const TypeRef& result) {
  if (const auto* tuple = graph::type_as<graph::TupleType>(result))
    return tuple->fields.to_vector();
  return {result};
}

// The type of a result that isn't checked yet.
TypeRef without_sizes(const NodeContext& cx, const TypeRef& result) {
  const auto* tensor = graph::type_as<graph::TensorType>(result);
  if (!tensor) misfit(cx, cat("a result of type ", to_text(result)), "tensors");
  return graph::tensor_type_unknown(tensor->dtype);
}

// A match of the result with its type, which checks dtype, rank and sizes when it runs.
Operand checked(NodeContext& cx, const Operand& value, const TypeRef& type) {
  const auto& tensor = *graph::type_as<graph::TensorType>(type);
  if (tensor.rank == graph::kUnknownRank) return value;
  std::vector<Dim> dims = tensor.dims.to_vector();
  while (static_cast<int64_t>(dims.size()) < tensor.rank) dims.push_back(cx.b.fresh_symbol("d"));
  return cx.b.match_shape(value, dims);
}

}  // namespace

bool is_custom(const Node& node) {
  return !node.domain.empty() && find_function(op_text(node));
}

Operands translate_custom(NodeContext& cx) {
  const std::string name = op_text(cx.node());
  const CustomSignature signature = signature_of(cx, name);
  const auto attributes = attributes_of(cx, signature);
  check_counts(cx, signature, attributes.size(), fields_of(signature.result).size());
  // Symbols of the signature stand for sizes of operands. The others are new: sizes that are only
  // known when the function has returned, or of operands whose sizes aren't known yet.
  graph::Matching bound;
  SymbolSet symbols;
  for (size_t i = 0; i < signature.params.size(); ++i) {
    if (i < cx.count() && cx.has(i)) bound.match(signature.params[i], graph::type_of(cx.in(i)));
    graph::collect_symbols(signature.params[i], &symbols);
  }
  graph::collect_symbols(signature.result, &symbols);
  for (const std::string& symbol : symbols) {
    const bool of_caller = signature.any_inputs && cx.b.in_scope(symbol);
    if (!bound.find(symbol) && !of_caller) bound.bind(symbol, cx.b.fresh_symbol(symbol));
  }
  const Operands arguments = arguments_of(cx, signature, attributes, bound);
  const std::vector<TypeRef> types = fields_of(bound.apply(signature.result));
  std::vector<TypeRef> unchecked;
  for (const TypeRef& type : types) unchecked.push_back(without_sizes(cx, type));
  const bool is_tuple = signature.result.is<graph::TupleType>();
  const Operand returned = cx.b.bind(
      graph::make_call(graph::CalleeKind::kPacked, name, Array<Operand>(arguments),
                       signature.promises, is_tuple ? graph::tuple_type(unchecked) : unchecked[0]));
  Operands out;
  for (size_t i = 0; i < types.size(); ++i) {
    const Operand field = is_tuple ? cx.b.field(returned, static_cast<int64_t>(i)) : returned;
    out.push_back(checked(cx, field, types[i]));
  }
  return out;
}

}  // namespace tenon::onnx

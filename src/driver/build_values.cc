#include "driver/build_values.h"

#include <algorithm>

#include "graph/ir/op.h"
#include "graph/ir/text.h"
#include "object/reflect.h"
#include "object/shape.h"

namespace tenon::driver {
namespace {

using graph::Operand;

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
  const auto number = value.as<int64_t>();  // the bits of a u64
  return wrap_to(dtype, number) == number ? graph::constant_int(number, dtype) : nullptr;
}

bool is_f32(const Any& value) {
  if (!value.is<Operand>() || value.is_none()) return false;
  const graph::TypeRef type = graph::type_of(operand_of(value));
  const auto* tensor = type.as<graph::TensorType>();
  const auto* scalar = type.as<graph::ScalarType>();
  return (tensor && tensor->dtype == f32) || (scalar && scalar->dtype == f32);
}

}  // namespace

[[noreturn]] void fail_value(const char* wanted, const Any& found) {
  throw Error(ErrorKind::Usage, cat("this is not ", wanted)).found(repr(found, 200));
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
      fail_value("an operand or a value that a constant can have", value);
  }
}

Operand build_scalar(const String& dtype, const Any& value) {
  const auto type = parse_dtype(dtype.view());
  const Operand scalar = type && is_scalar_dtype(*type) ? scalar_of(*type, value) : nullptr;
  if (scalar) return scalar;
  throw Error(ErrorKind::Usage, "this is not a scalar of that element type")
      .found(cat(repr(value, 200), " of ", quoted(dtype)))
      .expected(
          "a number that an element of this type can have: 3 of i8, 0.5 of f16, True of bool");
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

Operand operand_of(graph::Builder& builder, const Any& value, const graph::TypeRef& expected,
                   int depth) {
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

std::vector<Operand> arguments_of(graph::Builder& builder, const Array<Any>& values,
                                  const graph::TypeRef& callee,
                                  const std::vector<graph::TypeRef>& type_arguments) {
  const auto* function = callee.as<graph::FunctionType>();
  if (!function) return operands_of(builder, values);
  graph::ExpectedTypes types(function->type_params, function->params, function->result, nullptr,
                             builder.signatures().variances());
  types.state(Array<graph::TypeRef>(type_arguments));
  return operands_of(builder, values, &types);
}

std::vector<Operand> operator_operands(const Array<Any>& values) {
  const bool has_f32 = std::ranges::any_of(values, is_f32);
  std::vector<Operand> out;
  for (const Any& value : values) {
    const bool is_number = has_f32 && value.type_index == TypeIndex::Float;
    out.push_back(is_number ? graph::constant_float(f32, value.as<double>()) : operand_of(value));
  }
  return out;
}

Dim size_of(const Any& size) {
  if (size.type_index == TypeIndex::Int) return Dim(size.as<int64_t>());
  if (!size.is<String>()) fail_value("a size: an integer, or text such as \"2*n\"", size);
  return graph::parse_size(size.as<String>());
}

std::vector<Dim> sizes_of(const Array<Any>& sizes) {
  std::vector<Dim> out;
  for (const Any& size : sizes) out.push_back(size_of(size));
  return out;
}

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
      if (!dtype) fail_value("a dtype's name, such as \"f32\"", value);
      attrs.set(spec.name, Any(*dtype));
    }
  }
  return attrs;
}

}  // namespace tenon::driver

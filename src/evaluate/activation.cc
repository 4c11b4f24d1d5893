#include "evaluate/activation.h"

#include <cmath>

#include "device/device.h"
#include "graph/ir/text.h"
#include "loop/scalar.h"
#include "object/cell.h"
#include "object/reflect.h"
#include "support/failures.h"

namespace tenon::graph {
namespace {

// Whether the value is a shape, an array, a cell, a string, a function or a host's object where the
// type is one of those; true for other types.
bool is_of_kind(const TypeRef& type, const Any& found) {
  if (type.is<ShapeType>()) return found.type_index == TypeIndex::Shape;
  if (type.is<ArrayType>()) return found.as_object<ArrayObj>() != nullptr;
  if (type.is<AdtType>()) return found.as_object<CellObj>() != nullptr;
  if (type.is<FunctionType>()) return found.type_index == TypeIndex::Function;
  if (same_type(type, string_type())) return found.is<String>();
  const auto* opaque = type.as<OpaqueType>();
  // Null for keys that name no type of objects.
  const TypeInfo* wanted = opaque ? find_type(opaque->key.view()) : nullptr;
  return !wanted ||
         (found.type_index >= wanted->type_index && found.type_index <= wanted->type_last);
}

// The tensor with compact and aligned elements.
Tensor usable(const Tensor& tensor) {
  if (tensor.compact() && tensor.aligned()) return tensor;
  Tensor copy = allocate_tensor(tensor.shape(), tensor.dtype());
  tensor.copy_elements(copy.data());
  return copy;
}

// The elements of a small integer tensor, a shape or a scalar.
std::vector<int64_t> elements(const Any& found) {
  if (auto given = found.try_as<Tensor>(); given && *given) {
    const Tensor tensor = usable(*given);
    std::vector<int64_t> out;
    for (int64_t i = 0; i < tensor.count(); ++i) {
      const DataType dtype = tensor.dtype();
      if (dtype == u64 || !(dtype.is_int() || dtype.is_bool())) {
        throw Error(ErrorKind::Runtime,
                    cat("sizes can only be read from signed integers, or unsigned ones of at most "
                        "32 bits, not ",
                        to_text(dtype)));
      }
      out.push_back(loop::scalar_load(dtype, tensor.data_as<char>() + i * dtype.bytes()));
    }
    return out;
  }
  if (auto shape = found.try_as<Shape>()) return {shape->begin(), shape->end()};
  return {found.as<int64_t>()};
}

// Whether the value is a scalar of the dtype. A float is rounded to it, but not to infinity.
bool is_scalar_of(DataType dtype, const Any& found) {
  if (dtype.is_bool()) return found.type_index == TypeIndex::Bool;
  if (dtype.is_float()) {
    return found.type_index == TypeIndex::Float &&
           (!std::isfinite(found.v.f) || std::isfinite(round_to(dtype, found.v.f)));
  }
  return found.type_index == TypeIndex::Int && wrap_to(dtype, found.v.i) == found.v.i;
}

// The value with its floats, also those in tuples, rounded to the type.
Any rounded(const TypeRef& type, Any value) {
  if (const auto* scalar = type.as<ScalarType>(); scalar && value.type_index == TypeIndex::Float) {
    return scalar->dtype.is_float() ? Any(round_to(scalar->dtype, value.as<double>())) : value;
  }
  const auto* tuple = type.as<TupleType>();
  if (!tuple || is_unit(type)) return value;
  auto fields = value.try_as<Array<Any>>();
  if (!fields || fields->size() != tuple->fields.size()) return value;
  for (size_t i = 0; i < fields->size(); ++i) {
    fields->set(i, rounded(tuple->fields[i], (*fields)[i]));
  }
  return *fields;
}

}  // namespace

void Activation::set(const VarRef& var, Any value) {
  if (auto tensor = value.try_as<Tensor>(); tensor && *tensor) value = usable(*tensor);
  values_[slots_.at(var.get())] = std::move(value);
}

Any Activation::value(const Operand& operand) const {
  if (!operand) return Any();
  if (auto* constant = operand.as<Constant>()) return constant->value;
  return values_[slots_.at(operand.as<Var>())];
}

std::optional<int64_t> Activation::evaluated(const Dim& dim) const {
  return tenon::evaluate(dim, [this](std::string_view name) -> std::optional<int64_t> {
    auto it = sizes_.find(std::string(name));
    if (it == sizes_.end()) return std::nullopt;
    return it->second;
  });
}

int64_t Activation::size(const Dim& dim) const {
  const std::optional<int64_t> result = evaluated(dim);
  if (!result) fail_size(dim);
  return *result;
}

void Activation::fail_size(const Dim& dim) const {
  const DimNode& node = dim.node();
  std::optional<int64_t> left;
  for (const Ref<const DimNode>& arg : node.args) {
    const std::optional<int64_t> right = evaluated(Dim(arg));
    if (!right) fail_size(Dim(arg));
    auto step = make<DimNode>();
    step->kind = node.kind;
    for (const auto& side : {left, right}) {
      if (!side) continue;  // there is none before the first
      auto number = make<DimNode>();
      number->value = *side;
      step->args.push_back(number);
    }
    const std::optional<int64_t> next = evaluated(Dim(Ref<const DimNode>(step)));
    if (!next) {
      const bool divides = node.kind == DimKind::kFloorDiv || node.kind == DimKind::kMod;
      if (divides && *right == 0) throw division_by_zero();
      if (node.kind == DimKind::kBcast) throw broadcast_failure(*left, *right);
      throw size_overflow(*left, *right);
    }
    left = next;
  }
  throw Error(ErrorKind::Runtime, cat("the size ", tenon::to_text(dim), " cannot be computed"));
}

std::vector<int64_t> Activation::sizes(const Array<Dim>& dims) const {
  std::vector<int64_t> out;
  for (const Dim& dim : dims) out.push_back(size(dim));
  return out;
}

void Activation::bind_params(const FunctionExpr& function, std::span<const Any> args,
                             ErrorKind kind) {
  for (size_t i = 0; i < function.params.size(); ++i) {
    set(function.params[i], rounded(function.params[i]->type, args[i]));
  }
  for (bool compound : {false, true}) {
    for (size_t i = 0; i < function.params.size(); ++i) {
      bind_type(function.params[i]->type, args[i],
                {"input '", function.params[i]->name.view(), "' does not fit", kind}, compound);
    }
  }
}

void Activation::bind_field(const VarRef& var, Any value) {
  bind_type(var->type, value,
            {"the field '", var->name.view(), "' doesn't fit its type", ErrorKind::Runtime},
            /*compound=*/true);
  set(var, std::move(value));
}

std::optional<int64_t> Activation::find_size(const std::string& symbol) const {
  const auto at = sizes_.find(symbol);
  return at == sizes_.end() ? std::nullopt : std::optional(at->second);
}

void Activation::set_size(const std::string& symbol, int64_t value) {
  if (sizes_.emplace(symbol, value).second) bound_.push_back(symbol);
}

Any Activation::returned(std::string_view function, const TypeRef& type, Any found, bool compound) {
  // A host's object is checked by those who know it, as in bytecode.
  if (type.is<OpaqueType>() && !same_type(type, string_type())) return found;
  Any value = is_unit(type) && Array<Any>::accepts(found) ? Any() : rounded(type, std::move(found));
  const bool has_name = !function.empty();
  bind_type(
      type, value,
      {has_name ? "the result of function '" : "the result of a function of the host", function,
       has_name ? "' doesn't fit its declared type" : " doesn't fit its declared type",
       ErrorKind::Runtime},
      compound);
  return value;
}

void Activation::check_result(const TypeRef& type, const Any& found) {
  bind_type(type, found,
            {"a value does not match what the program expects here", "", "", ErrorKind::Runtime},
            /*compound=*/true);
}

void Activation::check_element(const TypeRef& type, const Any& found) {
  bind_type(type, found,
            {"an element of an array doesn't fit its type", "", "", ErrorKind::Runtime},
            /*compound=*/true);
}

void Activation::bind_elements(const Array<Dim>& dims, const Any& found, const Subject& subject,
                               bool compound) {
  const std::vector<int64_t> numbers = elements(found);
  for (size_t i = 0; i < numbers.size() && i < dims.size(); ++i) {
    if (numbers[i] < 0 && dims[i].kind() == DimKind::kSymbol) {
      throw Error(ErrorKind::Runtime, negative_size(cat(numbers[i])));
    }
  }
  const bool is_scalar = found.type_index == TypeIndex::Int || found.type_index == TypeIndex::Bool;
  bind_dims(dims, numbers,
            {subject.before, subject.name, subject.after, subject.kind, {}, is_scalar}, compound);
}

void Activation::bind_type(const TypeRef& type, const Any& found, const Subject& subject,
                           bool compound) {
  if (!is_of_kind(type, found)) {
    throw Error(subject.kind, subject.message())
        .expected(to_text(type))
        .found(type_name(found.type_index));
  }
  if (auto* scalar = type.as<ScalarType>()) {
    constexpr size_t kLongest = 200;  // characters of a value in a message
    if (!is_scalar_of(scalar->dtype, found)) {
      throw Error(subject.kind, subject.message())
          .expected(to_text(type))
          .found(repr(found, kLongest));
    }
    if (scalar->value_known) bind_elements({scalar->value}, found, subject, compound);
    return;
  }
  if (auto* shape = type.as<ShapeType>()) {
    if (shape->dims_known) bind_elements(shape->dims, found, subject, compound);
    return;
  }
  if (is_unit(type)) return;  // no array
  if (auto* tuple = type.as<TupleType>()) {
    const auto fields = found.try_as<Array<Any>>().value_or(Array<Any>());
    if (fields.size() != tuple->fields.size()) {
      throw Error(subject.kind, subject.message())
          .expected(to_text(type))
          .found(type_name(found.type_index));
    }
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      bind_type(tuple->fields[i], fields.at(i), subject, compound);
    }
    return;
  }
  auto* tensor_type = type.as<TensorType>();
  if (!tensor_type) return;
  auto tensor = found.try_as<Tensor>();
  if (!tensor || !*tensor || tensor->dtype() != tensor_type->dtype) {
    throw Error(subject.kind, subject.message())
        .expected(cat("a tensor of ", to_text(tensor_type->dtype)))
        .found(tensor && *tensor ? tensor_type_text(tensor->dtype(), tensor->shape())
                                 : type_name(found.type_index));
  }
  if (tensor_type->dims_known) {
    bind_dims(tensor_type->dims, tensor->shape(),
              {subject.before, subject.name, subject.after, subject.kind, tensor_type->dtype},
              compound);
  } else if (tensor_type->rank != kUnknownRank && tensor_type->rank != tensor->rank()) {
    throw Error(subject.kind, subject.message())
        .expected(to_text(type))
        .found(tensor_type_text(tensor->dtype(), tensor->shape()));
  }
  if (tensor_type->value_known) bind_elements(tensor_type->values, found, subject, compound);
}

void Activation::bind_dims(const Array<Dim>& dims, std::span<const int64_t> found,
                           const Subject& subject, bool compound) {
  if (dims.size() != found.size()) fail(dims, found, subject, -1);
  for (size_t i = 0; i < found.size(); ++i) {
    const Dim& dim = dims[i];
    const bool alone = dim.kind() == DimKind::kSymbol;
    if (alone && sizes_.try_emplace(std::string(dim.node().name), found[i]).second) {
      bound_.emplace_back(dim.node().name);
    } else if ((alone || dim.is_const() || compound) && size(dim) != found[i]) {
      fail(dims, found, subject, static_cast<int64_t>(i));
    }
  }
}

void Activation::fail(const Array<Dim>& dims, std::span<const int64_t> found,
                      const Subject& subject, int64_t axis) const {
  std::vector<std::string> expected, numbers;
  for (const Dim& dim : dims) {
    std::string text = tenon::to_text(dim);
    if (static_cast<int64_t>(expected.size()) == axis && !dim.is_const()) {
      text += cat("=", size(dim));
    }
    expected.push_back(std::move(text));
  }
  for (const int64_t number : found) numbers.push_back(cat(number));
  const auto text = [&](const std::vector<std::string>& sizes) {
    const std::string list = tenon::join(sizes, ", ");
    if (!subject.dtype.is_void()) return tensor_type_text(list, subject.dtype);
    return subject.is_scalar ? list : cat("elements [", list, "]");
  };
  throw Error(subject.kind, subject.message())
      .expected(text(expected))
      .found(text(numbers), axis < 0 || subject.is_scalar ? "" : cat("axis ", axis));
}

void Activation::forget_sizes_from(size_t count) {
  for (; bound_.size() > count; bound_.pop_back()) sizes_.erase(bound_.back());
}

Any Activation::match_shape(const MatchShape& match) {
  Any found = value(match.value);
  auto tensor = found.try_as<Tensor>();
  Subject subject{"a value does not match what the program expects here", "", "",
                  ErrorKind::Runtime};
  for (bool compound : {false, true}) {
    if (!match.elements && tensor && *tensor) {
      subject.dtype = tensor->dtype();
      bind_dims(match.dims, tensor->shape(), subject, compound);
    } else {
      bind_elements(match.dims, found, subject, compound);
    }
  }
  return found;
}

void Activation::check(const Check& check) const {
  const int64_t left = size(check.left), right = size(check.right);
  const bool holds = check.kind == CheckKind::kEqual ? left == right
                     : check.kind == CheckKind::kLessEqual
                         ? left <= right
                         : left == right || left == 1 || right == 1;
  if (holds) return;
  const auto shown = [](const Dim& size, int64_t value) {
    return size.is_const() ? cat(value) : cat(value, " (", tenon::to_text(size), ")");
  };
  throw Error(ErrorKind::Runtime, check_failure(check, check.message, shown(check.left, left),
                                                shown(check.right, right)));
}

}  // namespace tenon::graph

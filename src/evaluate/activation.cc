#include "evaluate/activation.h"

#include "graph/ir/text.h"
#include "loop/scalar.h"

namespace tenon::graph {
namespace {

// The elements of a small integer tensor, a shape or a scalar.
std::vector<int64_t> elements(const Any& found) {
  if (auto tensor = found.try_as<Tensor>(); tensor && *tensor) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < tensor->count(); ++i) {
      const DataType dtype = tensor->dtype();
      if (dtype == u64 || !(dtype.is_int() || dtype.is_bool())) {
        throw Error(ErrorKind::Runtime,
                    cat("sizes can only be read from signed integers, or unsigned ones of at most "
                        "32 bits, not ",
                        to_text(dtype)));
      }
      out.push_back(loop::scalar_load(dtype, tensor->data_as<char>() + i * dtype.bytes()));
    }
    return out;
  }
  if (auto shape = found.try_as<Shape>()) return {shape->begin(), shape->end()};
  return {found.as<int64_t>()};
}

}  // namespace

Any Activation::value(const Operand& operand) const {
  if (!operand) return Any();
  if (auto* constant = operand.as<Constant>()) return constant->value;
  return values_[slots_.at(operand.as<Var>())];
}

int64_t Activation::size(const Dim& dim) const {
  auto result = tenon::evaluate(dim, [this](std::string_view name) -> std::optional<int64_t> {
    auto it = sizes_.find(std::string(name));
    if (it == sizes_.end()) return std::nullopt;
    return it->second;
  });
  if (!result) {
    throw Error(ErrorKind::Runtime, cat("the size ", tenon::to_text(dim), " cannot be computed"));
  }
  return *result;
}

std::vector<int64_t> Activation::sizes(const Array<Dim>& dims) const {
  std::vector<int64_t> out;
  for (const Dim& dim : dims) out.push_back(size(dim));
  return out;
}

void Activation::bind_params(const FunctionExpr& function, std::span<const Any> args) {
  for (size_t i = 0; i < function.params.size(); ++i) set(function.params[i], args[i]);
  for (bool compound : {false, true}) {
    for (size_t i = 0; i < function.params.size(); ++i) {
      bind_type(function.params[i]->type, args[i], cat("input '", function.params[i]->name, "'"),
                compound);
    }
  }
}

void Activation::bind_elements(const Array<Dim>& dims, const Any& found, const std::string& what,
                               bool compound) {
  const std::vector<int64_t> numbers = elements(found);
  for (size_t i = 0; i < numbers.size() && i < dims.size(); ++i) {
    if (numbers[i] < 0 && dims[i].kind() == DimKind::kSymbol) {
      throw Error(ErrorKind::Runtime, cat("a size computed from data is negative: ", numbers[i]));
    }
  }
  bind_dims(dims, numbers, what, compound);
}

void Activation::bind_type(const TypeRef& type, const Any& found, const std::string& what,
                           bool compound) {
  if (auto* scalar = type.as<ScalarType>()) {
    if (scalar->value_known) bind_elements({scalar->value}, found, what, compound);
    return;
  }
  if (auto* shape = type.as<ShapeType>()) {
    if (shape->dims_known) bind_elements(shape->dims, found, what, compound);
    return;
  }
  if (is_unit(type)) return;  // no array
  if (auto* tuple = type.as<TupleType>()) {
    const auto fields = found.as<Array<Any>>();
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      bind_type(tuple->fields[i], fields.at(i), what, compound);
    }
    return;
  }
  auto* tensor_type = type.as<TensorType>();
  if (!tensor_type) return;
  auto tensor = found.try_as<Tensor>();
  if (!tensor || !*tensor || tensor->dtype() != tensor_type->dtype) {
    throw Error(ErrorKind::Usage, cat(what, " is not a tensor of ", to_text(tensor_type->dtype)));
  }
  if (tensor_type->dims_known) bind_dims(tensor_type->dims, tensor->shape(), what, compound);
  if (tensor_type->value_known) bind_elements(tensor_type->values, found, what, compound);
}

void Activation::bind_dims(const Array<Dim>& dims, std::span<const int64_t> found,
                           const std::string& what, bool compound) {
  if (dims.size() != found.size()) {
    throw Error(ErrorKind::Runtime, cat(what, " has rank ", found.size(), ", not ", dims.size()));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const Dim& dim = dims[i];
    const bool alone = dim.kind() == DimKind::kSymbol;
    if (alone && sizes_.try_emplace(std::string(dim.node().name), found[i]).second) {
      bound_.emplace_back(dim.node().name);
    } else if ((alone || dim.is_const() || compound) && size(dim) != found[i]) {
      throw Error(ErrorKind::Runtime, cat(what, ", axis ", i, ": found ", found[i], ", expected ",
                                          tenon::to_text(dim), " = ", size(dim)));
    }
  }
}

void Activation::forget_sizes_from(size_t count) {
  for (; bound_.size() > count; bound_.pop_back()) sizes_.erase(bound_.back());
}

Any Activation::match_shape(const MatchShape& match) {
  Any found = value(match.value);
  auto tensor = found.try_as<Tensor>();
  for (bool compound : {false, true}) {
    if (!match.elements && tensor && *tensor) {
      bind_dims(match.dims, tensor->shape(), "match_shape", compound);
    } else {
      bind_elements(match.dims, found, "match_shape", compound);
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
  if (!holds) {
    throw Error(
        ErrorKind::Runtime,
        cat(check.message.empty() ? "a check fails" : check.message.view(), ": found ", left, " (",
            tenon::to_text(check.left), ") and ", right, " (", tenon::to_text(check.right), ")"));
  }
}

}  // namespace tenon::graph

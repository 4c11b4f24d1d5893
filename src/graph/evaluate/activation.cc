#include "graph/evaluate/activation.h"

#include "graph/ir/text.h"

namespace tenon::graph {
namespace {

// The elements of a small integer tensor, a shape or a scalar.
std::vector<int64_t> elements(const Any& found) {
  if (auto tensor = found.try_as<Tensor>(); tensor && *tensor) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < tensor->count(); ++i) {
      if (tensor->dtype() == i64) {
        out.push_back(tensor->data_as<int64_t>()[i]);
      } else if (tensor->dtype() == i32) {
        out.push_back(tensor->data_as<int32_t>()[i]);
      } else {
        throw Error(ErrorKind::Runtime,
                    cat("sizes are read from i32 or i64, not ", to_text(tensor->dtype())));
      }
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

void Activation::bind_type(const TypeRef& type, const Any& found, const std::string& what,
                           bool compound) {
  auto* tensor_type = type.as<TensorType>();
  if (!tensor_type) return;
  auto tensor = found.try_as<Tensor>();
  if (!tensor || !*tensor || tensor->dtype() != tensor_type->dtype) {
    throw Error(ErrorKind::Usage, cat(what, " is no tensor of ", to_text(tensor_type->dtype)));
  }
  if (tensor_type->dims_known) bind_dims(tensor_type->dims, tensor->shape(), what, compound);
  if (tensor_type->value_known) bind_dims(tensor_type->values, elements(found), what, compound);
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
  std::vector<int64_t> dims;
  auto tensor = found.try_as<Tensor>();
  if (!match.elements) {
    if (tensor && *tensor) {
      dims.assign(tensor->shape().begin(), tensor->shape().end());
    } else {
      const Shape shape = found.as<Shape>();
      dims.assign(shape.begin(), shape.end());
    }
  } else {
    dims = elements(found);
    for (size_t i = 0; i < dims.size() && i < match.dims.size(); ++i) {
      if (dims[i] < 0 && match.dims[i].kind() == DimKind::kSymbol) {
        throw Error(ErrorKind::Runtime, cat("a size computed from data is negative: ", dims[i]));
      }
    }
  }
  for (bool compound : {false, true}) bind_dims(match.dims, dims, "match_shape", compound);
  return found;
}

void Activation::check(const Check& check) const {
  const int64_t left = size(check.left), right = size(check.right);
  const bool holds = check.kind == CheckKind::kEqual ? left == right
                     : check.kind == CheckKind::kLessEqual
                         ? left <= right
                         : left == right || left == 1 || right == 1;
  if (!holds) {
    throw Error(ErrorKind::Runtime,
                cat(check.message, ": found ", left, " (", tenon::to_text(check.left), ") and ",
                    right, " (", tenon::to_text(check.right), ")"));
  }
}

}  // namespace tenon::graph

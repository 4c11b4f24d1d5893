#include "graph/pass/fold_batch_norm.h"

#include <cmath>
#include <limits>
#include <optional>

#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

const TensorType& tensor_of(const Operand& operand) {
  return *type_of(operand).as<TensorType>();
}

// The elements of a constant of f32 or f64.
std::optional<std::vector<double>> constant_elements(const Operand& operand) {
  const Tensor tensor = constant_tensor(operand);
  if (!tensor || (tensor.dtype() != f32 && tensor.dtype() != f64)) return std::nullopt;
  const auto count = static_cast<size_t>(tensor.count());
  if (tensor.dtype() == f64) {
    return std::vector<double>(tensor.data_as<double>(), tensor.data_as<double>() + count);
  }
  return std::vector<double>(tensor.data_as<float>(), tensor.data_as<float>() + count);
}

// Whether x * k + (bias - mean * k) equals (x - mean) * k + bias for every x, up to rounding. It
// does not if one of the numbers is infinite or NaN: then different x give NaN.
bool is_affine(const Call& norm, DataType dtype) {
  const auto scale = constant_elements(norm.args[1]), bias = constant_elements(norm.args[2]),
             mean = constant_elements(norm.args[3]), variance = constant_elements(norm.args[4]);
  if (!scale || !bias || !mean || !variance) return false;
  const double epsilon = norm.attrs.at("epsilon").as<double>();
  const double most =
      dtype == f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  auto fits = [&](double value) { return std::abs(value) <= most; };  // false for NaN
  for (size_t i = 0; i < scale->size(); ++i) {
    const double squared = (*variance)[i] + epsilon, k = (*scale)[i] / std::sqrt(squared);
    if (!(squared > 0) || !fits(squared) || !fits(k) || !fits((*mean)[i] * k) ||
        !fits((*bias)[i] - (*mean)[i] * k)) {
      return false;
    }
  }
  return true;
}

class Folder : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override { uses_ = count_uses(function); }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (const Call* conv = as_op(value, op::conv)) {
      Operand result = keep(var, value);
      if (uses_[var.get()] == 1) {
        convolutions_[result.get()] = {Ref<const Call>(conv), builder().span()};
      }
      return result;
    }
    const Call* norm = as_op(value, op::batch_norm);
    if (!norm || !tensor_of(norm->args[0]).dims_known) return keep(var, value);
    // y = (x - mean) / sqrt(variance + epsilon) * scale + bias = x * k + c, where k and c have one
    // element per channel.
    Builder& b = builder();
    const TensorType& x = tensor_of(norm->args[0]);
    const DataType dtype = x.dtype;
    if (dtype != f32 && dtype != f64) return keep(var, value);
    const auto channel =
        static_cast<size_t>(normalised_axis(norm->attrs.at("axis").as<int64_t>(), x.rank));
    for (size_t i = 1; i < norm->args.size(); ++i) {
      const TensorType& statistic = tensor_of(norm->args[i]);
      if (statistic.dtype != dtype || !proves_equal(statistic.dims[0], x.dims[channel])) {
        return keep(var, value);
      }
    }
    if (!is_affine(*norm, dtype)) return keep(var, value);
    const Operand epsilon = number_constant(dtype, norm->attrs.at("epsilon").as<double>());
    const Operand k =
        b.op(op::mul, {norm->args[1], b.op(op::rsqrt, {b.op(op::add, {norm->args[4], epsilon})})});
    const Operand mean = norm->args[3], bias = norm->args[2];
    auto conv = convolutions_.find(norm->args[0].get());
    if (conv != convolutions_.end() && channel == 1 && !is_channels_last(*conv->second.call) &&
        conv->second.call->args[1].is<Constant>()) {
      return into_weights(conv->second, k, mean, bias);
    }
    const Operand c = b.op(op::sub, {bias, b.op(op::mul, {mean, k})});
    std::vector<Dim> shape(static_cast<size_t>(x.rank), Dim(1));
    shape[channel] = tensor_of(k).dims[0];
    return b.op(op::add,
                {b.op(op::mul, {norm->args[0], reshaped(b, k, shape)}), reshaped(b, c, shape)});
  }

 private:
  struct Convolution {
    Ref<const Call> call;
    Span span;
  };

  // conv(x, w, b) * k + (bias - mean * k) = conv(x, w * k, (b - mean) * k + bias)
  Operand into_weights(const Convolution& old, const Operand& k, const Operand& mean,
                       const Operand& bias) {
    const Call& conv = *old.call;
    Builder& b = builder();
    const TensorType& weights = tensor_of(conv.args[1]);
    std::vector<Dim> shape(weights.dims.size(), Dim(1));
    shape[0] = weights.dims[0];
    const Operand scaled = b.op(op::mul, {conv.args[1], reshaped(b, k, shape)});
    const Operand centred = conv.args.size() > 2 && conv.args[2]
                                ? b.op(op::sub, {conv.args[2], mean})
                                : b.op(op::neg, {mean});
    const Operand shifted = b.op(op::add, {b.op(op::mul, {centred, k}), bias});
    b.at(Span::merge(old.span, b.span()));
    return b.op(op::conv, {conv.args[0], scaled, shifted}, conv.attrs);
  }

  std::unordered_map<const Var*, int64_t> uses_;
  std::unordered_map<const Object*, Convolution> convolutions_;
};

}  // namespace

Module fold_batch_norm(const Module& module, PassContext&) {
  return Folder().run(module);
}

}  // namespace tenon::graph

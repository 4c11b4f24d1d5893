#include "graph/pass/fold_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "graph/ir/rewrite.h"
#include "graph/ir/use_def.h"

namespace tenon::graph {
namespace {

const TensorType& tensor_of(const Operand& operand) {
  return *type_of(operand).as<TensorType>();
}

double greatest_of(DataType dtype) {
  return dtype == f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
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

// What x - mean is multiplied by in each channel, if the norm's scale and variance are constants of
// which that is a number.
std::optional<std::vector<double>> factors_of(const Call& norm) {
  const auto scale = constant_elements(norm.args[1]), variance = constant_elements(norm.args[4]);
  if (!scale || !variance) return std::nullopt;
  const double epsilon = norm.attrs.at("epsilon").as<double>();
  std::vector<double> factors;
  for (size_t i = 0; i < scale->size(); ++i) {
    const double squared = (*variance)[i] + epsilon;
    if (!(squared > 0) || !(squared <= greatest_of(tensor_of(norm.args[4]).dtype))) {
      return std::nullopt;
    }
    factors.push_back((*scale)[i] / std::sqrt(squared));
  }
  return factors;
}

// x - mean is exact where x is near the mean; x * k is not, so a mean that is this many times what
// the normalised values are costs as many digits.
constexpr double kGreatestMean = 1024;

// Whether x * k + (bias - mean * k) equals (x - mean) * k + bias for every x, up to rounding. It
// does not if one of the numbers is infinite or NaN: then different x give NaN.
bool is_affine(const Call& norm, const std::vector<double>& factors, DataType dtype) {
  const auto scale = constant_elements(norm.args[1]), bias = constant_elements(norm.args[2]),
             mean = constant_elements(norm.args[3]);
  if (!scale || !bias || !mean) return false;
  auto fits = [&](double value) { return std::abs(value) <= greatest_of(dtype); };  // not NaN
  for (size_t i = 0; i < factors.size(); ++i) {
    const double shift = (*mean)[i] * factors[i];
    if (!fits(factors[i]) || !fits(shift) || !fits((*bias)[i] - shift) ||
        std::abs(shift) > kGreatestMean * (std::abs((*scale)[i]) + std::abs((*bias)[i]))) {
      return false;
    }
  }
  return true;
}

// Whether the convolution's weights are constants that, multiplied by the norm's factors, stay
// normal (neither subnormal nor infinite) or zero.
bool may_scale_weights(const Call& conv, const std::vector<double>& factors, DataType dtype) {
  const auto weights = constant_elements(conv.args[1]);
  if (!weights || factors.empty()) return false;
  const double least =
      dtype == f32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  const double most = greatest_of(dtype);
  const size_t count = weights->size() / factors.size();  // of a filter
  for (size_t i = 0; i < factors.size(); ++i) {
    const double k = std::abs(factors[i]);
    double smallest = most, greatest = 0;
    for (size_t j = i * count; j < (i + 1) * count; ++j) {
      const double weight = std::abs((*weights)[j]);
      if (!(weight <= most)) return false;
      greatest = std::max(greatest, weight);
      if (weight > 0) smallest = std::min(smallest, weight);
    }
    if (greatest * k > most || (greatest > 0 && k > 0 && smallest * k < least)) return false;
  }
  return true;
}

class Folder : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override { use_def_.emplace(function); }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (const Call* conv = as_op(value, op::conv)) {
      Operand result = keep(var, value);
      if (use_def_->uses(var) == 1) {
        convolutions_[result.get()] = {Ref<const Call>(conv), builder().span(), block_of(var)};
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
    const auto factors = factors_of(*norm);
    if (!factors || !is_affine(*norm, *factors, dtype)) return keep(var, value);
    const Operand epsilon = number_constant(dtype, norm->attrs.at("epsilon").as<double>());
    const Operand k =
        b.op(op::mul, {norm->args[1], b.op(op::rsqrt, {b.op(op::add, {norm->args[4], epsilon})})});
    const Operand mean = norm->args[3], bias = norm->args[2];
    auto conv = convolutions_.find(norm->args[0].get());
    // In an inner block, such as a loop's, the convolution would be computed more often.
    if (conv != convolutions_.end() && conv->second.block == block_of(var) && channel == 1 &&
        !is_channels_last(*conv->second.call) &&
        may_scale_weights(*conv->second.call, *factors, dtype)) {
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
    const Block* block;
  };

  const Block* block_of(const VarRef& var) const { return use_def_->definition(var).block; }

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

  std::optional<UseDef> use_def_;
  std::unordered_map<const Object*, Convolution> convolutions_;
};

}  // namespace

Module fold_batch_norm(const Module& module, PassContext&) {
  return Folder().run(module);
}

}  // namespace tenon::graph

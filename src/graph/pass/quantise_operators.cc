#include "graph/pass/quantise_operators.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "graph/ir/permutation.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// An operand of a product: integers of 8 bits, and what dequantises them.
struct Quantised {
  Operand integers, scale, zero;  // zero may be absent
};

// Whether a scale is far from where a product or quotient of two could leave the range of f32.
bool is_moderate(double scale) {
  return scale >= 1e-10 && scale <= 1e10;
}

// Whether all elements of a constant of f32 are 0 or of a magnitude between these; true of what is
// known only at run time.
bool is_within(const Operand& operand, double least, double most) {
  const Tensor known = constant_tensor(operand);
  if (!known || known.dtype() != f32) return true;
  const float* const begin = known.data_as<float>();
  return std::all_of(begin, begin + known.count(), [&](float v) {
    return v == 0 || (std::abs(v) >= least && std::abs(v) <= most);
  });
}

// Whether products of this scale and another such one stay among the normal numbers of f32:
// infinity times a sum of 0 would be NaN, and a subnormal number has lost digits.
bool may_multiply(const Operand& scale) {
  return is_within(scale, 1e-18, 1e10);
}

// Whether quotients by moderate scales stay among them.
bool may_divide_constant(const Operand& factor) {
  return is_within(factor, 1e-27, 1e27);
}

// Whether both are absent, or constants of one element with the same bits.
bool is_same_number(const Operand& a, const Operand& b) {
  if (!a || !b) return !a && !b;
  const Tensor x = constant_tensor(a), y = constant_tensor(b);
  return x && y && x.dtype() == y.dtype() && x.count() == 1 && y.count() == 1 &&
         std::memcmp(x.data(), y.data(), static_cast<size_t>(x.dtype().bytes())) == 0;
}

Operand zero_of(const Call& call) {
  return call.args.size() > 2 ? call.args[2] : Operand();
}

class Quantiser : public Rewriter {
 protected:
  void enter(const FunctionRef&) override { constants_.clear(); }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    Operand y;
    if (const Call* call = as_op(value, op::matmul)) {
      y = matmul(*call);
    } else if (const Call* call = as_op(value, op::conv)) {
      y = conv(*call);
    } else if (const Call* call = as_op(value, op::quantize_linear)) {
      y = moved(*call);
      if (!y) y = with_scale_inside(*call);
    }
    return y ? y : keep(var, value);
  }

 private:
  // ---- products ----

  Operand matmul(const Call& call) {
    const auto a = dequantised(call.args[0]);
    const TensorType* right = known_tensor(call.args[1]);
    if (!a || !right || right->rank < 2) return Operand();
    const auto b = weights(call.args[1], right->rank - 1);
    if (!b || (right->rank > 2 && known_tensor(b->scale)->rank > 0) ||
        !sum_fits(right->dims[right->dims.size() - 2])) {
      return Operand();
    }
    const Operand product = make(op::matmul_integer, {a->integers, b->integers, a->zero, b->zero});
    return make(op::mul, {as_float(product), make(op::mul, {a->scale, b->scale})});
  }

  Operand conv(const Call& call) {
    const TensorType* x = known_tensor(call.args[0]);
    if (!x || is_channels_last(call)) return Operand();
    const auto a = dequantised(call.args[0]);
    const auto w = weights(call.args[1], 0, kBytes | kNarrowInts);
    if (!a || !w || !is_constant(w->integers)) return Operand();
    const TensorType& kernel = *known_tensor(call.args[1]);
    if (!sum_fits(product({kernel.dims.begin() + 1, kernel.dims.end()}))) return Operand();
    Attrs attributes;
    for (const AttrSpec& own : OperatorTable::global().find(op::conv_integer)->attrs) {
      attributes.set(own.name, call.attrs.at(own.name));
    }
    const Operand product =
        make(op::conv_integer, {a->integers, w->integers, a->zero, w->zero}, attributes);
    const size_t rank = x->dims.size();
    const Operand scale = make(op::mul, {a->scale, per_channel(w->scale, rank)});
    Operand y = make(op::mul, {as_float(product), scale});
    if (call.args.size() < 3 || !call.args[2]) return y;
    return make(op::add, {y, per_channel(call.args[2], rank)});
  }

  // Whether a sum of so many products of bytes, less zero points, fits i32.
  static bool sum_fits(const Dim& count) {
    constexpr int64_t kMost = (int64_t{1} << 31) / (255 * 255);  // 33,025
    return count.is_const() && *count.as_const() <= kMost;
  }

  // The call of dequantize_linear from one of `dtypes` to f32 that makes `operand`, or null.
  const Call* dequantisation(const Operand& operand, DtypeSet dtypes = kBytes) {
    const Call* call = call_of(builder(), operand, op::dequantize_linear);
    if (!call || call->attrs.at("block_size").as<int64_t>() != 0) return nullptr;
    const TensorType *x = known_tensor(call->args[0]), *scale = known_tensor(call->args[1]);
    const bool fits = x && scale && contains(dtypes, x->dtype) && scale->dtype == f32 &&
                      may_multiply(call->args[1]);
    return fits ? call : nullptr;
  }

  // An operand with parameters of one number.
  std::optional<Quantised> dequantised(const Operand& operand) {
    const Call* call = dequantisation(operand);
    if (!call || !has_one_element(known_tensor(call->args[1])->dims)) return std::nullopt;
    return Quantised{call->args[0], as_number(call->args[1]), as_number(zero_of(*call))};
  }

  // An operand of `dtypes` whose parameters are one number or, of a constant, one for each index of
  // `axis`; what is narrower than a byte is widened. A transpose between dequantising and the
  // product is looked through.
  std::optional<Quantised> weights(const Operand& operand, int64_t axis, DtypeSet dtypes = kBytes) {
    const auto transpose = as_transposed(builder(), operand);
    const Call* call = dequantisation(transpose ? transpose->source : operand, dtypes);
    if (!call) return std::nullopt;
    Operand integers = as_bytes(call->args[0]);
    const Operand zero = as_bytes(zero_of(*call));
    if (transpose) {
      integers = make(op::transpose, {integers}, attrs({{"perm", attr_ints(transpose->perm)}}));
      axis = transpose->perm[static_cast<size_t>(axis)];
    }
    if (has_one_element(known_tensor(call->args[1])->dims)) {
      return Quantised{integers, as_number(call->args[1]), as_number(zero)};
    }
    const int64_t rank = known_tensor(integers)->rank;
    if (normalised_axis(call->attrs.at("axis").as<int64_t>(), rank) != axis) return std::nullopt;
    return Quantised{integers, call->args[1], zero};
  }

  // Integers of at most 8 bits in bytes of the same sign; absent if `x` is.
  Operand as_bytes(const Operand& x) {
    if (!x || contains(kBytes, known_tensor(x)->dtype)) return x;
    const DataType bytes = known_tensor(x)->dtype.is_signed_int() ? i8 : u8;
    return make(op::cast, {x}, attrs({{"dtype", Any(bytes)}}));
  }

  // A parameter of one element as a tensor of rank 0.
  Operand as_number(const Operand& parameter) {
    const bool reshapes = parameter && known_tensor(parameter)->rank != 0;
    return reshapes ? reshaped(builder(), parameter, {}) : parameter;
  }

  // A parameter of the output channels, in a shape that broadcasts to an image of this rank.
  Operand per_channel(const Operand& parameter, size_t rank) {
    const TensorType& type = *known_tensor(parameter);
    if (type.rank == 0) return parameter;
    std::vector<Dim> shape(rank, Dim(1));
    shape[1] = type.dims[0];
    return reshaped(builder(), parameter, shape);
  }

  Operand as_float(const Operand& x) { return make(op::cast, {x}, attrs({{"dtype", Any(f32)}})); }

  // ---- movement ----

  Operand moved(const Call& quantise) {
    constexpr OperatorName kSelecting[] = {op::expand, op::max_pool, op::reshape, op::slice,
                                           op::transpose};
    const Call* call = builder().definition_of(quantise.args[0]).as<Call>();
    if (!call) return Operand();
    const bool selects = std::ranges::any_of(
        kSelecting, [&](const OperatorName& name) { return is_op(*call, name); });
    if (!selects || call->args.size() != 1) return Operand();
    const Call* before = dequantisation(call->args[0]);
    const bool same = before && is_same_number(before->args[1], quantise.args[1]) &&
                      is_same_number(zero_of(*before), zero_of(quantise)) &&
                      is_moderate(*single_number(quantise.args[1]));
    const Operand zero = zero_of(quantise);
    const DataType dtype =
        zero ? known_tensor(zero)->dtype : quantise.attrs.at("dtype").as<DataType>();
    if (!same || known_tensor(before->args[0])->dtype != dtype) return Operand();
    return make(call->callee, {before->args[0]}, call->attrs);
  }

  // ---- scales ----

  // Terms of a sum are followed to this depth.
  static constexpr int kMaxDepth = 4;

  Operand with_scale_inside(const Call& quantise) {
    const auto scale = single_number(quantise.args[1]);
    const TensorType *type = known_tensor(quantise.args[1]), *x = known_tensor(quantise.args[0]);
    if (!scale || !type || !x || x->dtype != f32 || type->dtype != f32 || !is_moderate(*scale) ||
        *scale == 1 || !may_divide(quantise.args[0], kMaxDepth)) {
      return Operand();
    }
    const Operand inside = divided(quantise.args[0], as_number(quantise.args[1]));
    return make(op::quantize_linear,
                {inside, number_constant(f32, 1, type->dims.size()), zero_of(quantise)},
                quantise.attrs);
  }

  // Whether `x` is a sum of integers with constant factors, and of constants.
  bool may_divide(const Operand& x, int depth) {
    if (depth == 0) return false;
    const Call* call = builder().definition_of(x).as<Call>();
    if (!call) return false;
    if (is_op(*call, op::relu)) return may_divide(call->args[0], depth - 1);
    if (is_op(*call, op::add)) {
      bool some = false;
      for (const Operand& term : call->args) {
        if (is_constant(term)) {
          if (!may_divide_constant(term)) return false;
          continue;
        }
        if (!may_divide(term, depth - 1)) return false;
        some = true;
      }
      return some;
    }
    const auto divisible = [&](size_t factor) {
      return is_constant(call->args[factor]) && may_divide_constant(call->args[factor]);
    };
    if (is_op(*call, op::mul)) {
      return (is_integer(call->args[0]) && divisible(1)) ||
             (is_integer(call->args[1]) && divisible(0));
    }
    return is_op(*call, op::dequantize_linear) && divisible(1);
  }

  // Whether `x` is cast from integers.
  bool is_integer(const Operand& x) {
    const Call* call = call_of(builder(), x, op::cast);
    const TensorType* from = call ? known_tensor(call->args[0]) : nullptr;
    return from && from->dtype == i32;
  }

  // x / scale for an x that may be divided.
  Operand divided(const Operand& x, const Operand& scale) {
    if (is_constant(x)) return make(op::div, {x, scale});
    const Call& call = *builder().definition_of(x).as<Call>();
    std::vector<Operand> args = call.args.to_vector();
    if (is_op(call, op::relu)) {
      args[0] = divided(args[0], scale);
    } else if (is_op(call, op::add)) {
      for (Operand& term : args) term = divided(term, scale);
    } else {  // the constant factor of a product, or the scale of dequantize_linear
      const size_t factor = is_constant(args[1]) ? 1 : 0;
      args[factor] = make(op::div, {args[factor], scale});
    }
    return make(call.callee, args, call.attrs);
  }

  // Whether folding will find `x` constant, as far as a bounded search tells. Each variable is
  // looked at once.
  bool is_constant(const Operand& x, int depth = kMaxDepth) {
    if (x.is<Constant>()) return true;
    auto* var = x.as<Var>();
    if (!var || depth == 0) return false;
    auto [known, is_new] = constants_.try_emplace(var, false);
    if (!is_new) return known->second;
    const ExprRef definition = builder().definition_of(x);
    const Operator* operation = operator_of(definition);
    if (!operation || operation->kind == OpKind::kOpaque) return false;
    for (const Operand& arg : definition.as<Call>()->args) {
      if (arg && !is_constant(arg, depth - 1)) return false;
    }
    return constants_[var] = true;
  }

  Operand make(std::string_view name, const std::vector<Operand>& args, Attrs attributes = {}) {
    return builder().op(name, args, std::move(attributes));
  }

  std::unordered_map<const Var*, bool> constants_;  // answers of is_constant
};

}  // namespace

Module quantise_operators(const Module& module, PassContext&) {
  return Quantiser().run(module);
}

}  // namespace tenon::graph

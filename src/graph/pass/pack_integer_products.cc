#include "graph/pass/pack_integer_products.h"

#include "graph/ir/rewrite.h"
#include "loop/scalar_ops.h"
#include "support/rounding.h"

namespace tenon::graph {
namespace {

using loop::kBytesPerWord;

class Packer : public Rewriter {
 public:
  explicit Packer(PassContext& cx) : cx_(cx) {}

 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (const Call* call = as_op(value, op::matmul_integer)) {
      const Operand y = matmul(*call);
      return y ? y : keep(var, value);
    }
    if (const Call* call = as_op(value, op::conv_integer)) {
      const Operand y = conv(*call);
      return y ? y : keep(var, value);
    }
    return keep(var, value);
  }

 private:
  // A product's operand with the signedness that words have, and its zero point, null if it is 0.
  struct Side {
    Operand x, zero;
  };

  Operand matmul(const Call& call) {
    const TensorType *left = known_tensor(call.args[0]), *right = known_tensor(call.args[1]);
    if (!left || !right || right->rank < 2 || left->rank < (right->rank == 2 ? 1 : 2) ||
        !is_worth_packing(call, *left) || !zeros_are_constant_along_sums(call)) {
      return Operand();
    }
    const Side a = side(call, 0, u8), b = side(call, 1, i8);
    if (left->rank == 1 && b.zero && known_tensor(b.zero)->rank > 1) return Operand();
    const Dim &depth = right->dims[right->dims.size() - 2], &columns = right->dims.back();
    if (b.zero && !depth.is_const()) return Operand();
    const Operand words = pack(b.x, right->rank - 2, columns.as_const());
    const Operand product = at().op(op::matmul_words, {in_whole_words(a.x), words},
                                    attrs({{"columns", Any(columns.ref())}}));
    Operand y = product;
    if (a.zero)
      y = less_zero_of_a(y, a, sums(b, {-2}, right->rank > 2, depth.as_const().value_or(0)));
    if (!b.zero) return y;
    const Operand rows = at().op(op::reduce_sum, {as_i32(a.x)},
                                 attrs({{"axes", attr_ints({-1})}, {"keepdims", Any(true)}}));
    return at().op(op::sub, {y, at().op(op::mul, {as_i32(b.zero), rows})});
  }

  Operand conv(const Call& call) {
    const TensorType* weights = known_tensor(call.args[1]);
    if (!weights || !call.args[1].is<Constant>() || !fits(*weights) || !is_channels_last(call)) {
      return Operand();
    }
    const int64_t groups = call.attrs.at("groups").as<int64_t>();
    if (groups != 1 && !is_depthwise(call, *weights)) return Operand();
    const Side w = side(call, 1, i8);
    if (w.zero) return Operand();
    Side x = side(call, 0, u8);
    if (x.zero && known_tensor(x.zero)->rank > 0) x.zero = reshaped(at(), x.zero, {});
    return groups == 1 ? conv(call, *weights, x, w) : depthwise(call, *weights, x, w);
  }

  Operand conv(const Call& call, const TensorType& weights, const Side& x, const Side& w) {
    const size_t rank = weights.dims.size();
    const int64_t columns = *weights.dims[rank - 1].as_const();
    std::vector<int64_t> summed;
    for (size_t i = 0; i + 1 < rank; ++i) summed.push_back(static_cast<int64_t>(i));
    const Operand words = pack(w.x, 0, columns);
    Attrs attributes = attrs({{"columns", Any(Dim(columns).ref())}});
    for (const char* name : {"strides", "pads", "dilations"}) {
      attributes.set(name, call.attrs.at(name));
    }
    const Operand product =
        at().op(op::conv_words, {in_whole_words(x.x), words, x.zero}, attributes);
    return x.zero ? less_zero_of_a(product, x, sums(w, summed, false, 0)) : product;
  }

  // Whether each channel has one filter of its own, whose places along the last spatial axis are
  // neighbours and fill at least half of a word.
  static bool is_depthwise(const Call& call, const TensorType& weights) {
    const TensorType* x = known_tensor(call.args[0]);
    const size_t rank = weights.dims.size();
    const Dim& channels = weights.dims[rank - 1];
    const auto dilations = call.attrs.at("dilations").as<Array<int64_t>>();
    return x && weights.dims[rank - 2].is_const(1) && x->dims.back() == channels &&
           channels.is_const(call.attrs.at("groups").as<int64_t>()) &&
           *weights.dims[rank - 3].as_const() > 1 && (dilations.empty() || dilations.back() == 1);
  }

  Operand depthwise(const Call& call, const TensorType& weights, const Side& x, const Side& w) {
    // Without the axis of the one channel that a filter has.
    std::vector<Dim> shape(weights.dims.begin(), weights.dims.end() - 2);
    const size_t spatial = shape.size();
    const int64_t places = *shape.back().as_const(), in_words = round_up(places, kBytesPerWord);
    std::vector<int64_t> summed;
    for (size_t i = 0; i < spatial; ++i) summed.push_back(static_cast<int64_t>(i));
    shape.push_back(weights.dims.back());
    const Side filters = {reshaped(at(), w.x, shape), Operand()};
    const Operand panel =
        at().op(op::pack_words, {filters.x}, attrs({{"width", Any(*shape.back().as_const())}}));
    ++cx_.packed_constants;
    shape[spatial - 1] = Dim(in_words / kBytesPerWord);
    // Words read as many places more as they have.
    auto pads = call.attrs.at("pads").as<Array<Dim>>().to_vector();
    if (pads.empty()) pads.assign(2 * spatial, Dim(0));
    pads.back() = pads.back() + Dim(in_words - places);
    Attrs attributes = attrs({{"pads", attr_dims(pads)}});
    for (const char* name : {"strides", "dilations"}) {
      attributes.set(name, call.attrs.at(name));
    }
    const Operand product =
        at().op(op::depthwise_words, {x.x, reshaped(at(), panel, shape), x.zero}, attributes);
    return x.zero ? less_zero_of_a(product, x, sums(filters, summed, false, 0)) : product;
  }

  // Whether folding may pack a constant of this type.
  bool fits(const TensorType& type) const {
    const auto bytes = bytes_of(type).as_const();
    return bytes && *bytes > 0 && *bytes <= cx_.fold_limit;
  }

  // Whether the product is faster with its right operand packed: a constant is packed by folding,
  // and another one is read as often as `left` has rows.
  bool is_worth_packing(const Call& call, const TensorType& left) const {
    constexpr int64_t kFewRows = 8;
    if (call.args[1].is<Constant>()) return fits(*known_tensor(call.args[1]));
    const auto rows = left.rank > 1 ? left.dims[left.dims.size() - 2].as_const() : 1;
    return !rows || *rows > kFewRows;
  }

  // Whether the zero points of a matmul_integer don't vary along the summed axes.
  static bool zeros_are_constant_along_sums(const Call& call) {
    const TensorType* a = call.args.size() > 2 ? known_tensor(call.args[2]) : nullptr;
    const TensorType* b = call.args.size() > 3 ? known_tensor(call.args[3]) : nullptr;
    const bool b_varies = b && b->rank > 1 && !b->dims[b->dims.size() - 2].is_const(1);
    return (!a || a->rank == 0 || a->dims.back().is_const(1)) && !b_varies;
  }

  Side side(const Call& call, size_t operand, DataType dtype) {
    const Operand& x = call.args[operand];
    const Operand zero = call.args.size() > operand + 2 ? call.args[operand + 2] : Operand();
    if (known_tensor(x)->dtype == dtype)
      return {x, zero && !is_filled_with(zero, 0) ? zero : Operand()};
    if (!zero) return {moved(x, dtype), number_constant(dtype, 128)};
    return {moved(x, dtype), is_filled_with(zero, 128) ? Operand() : moved(zero, dtype)};
  }

  // x + 128 as u8, or x - 128 as i8.
  Operand moved(const Operand& x, DataType dtype) {
    const Operand bits = at().op(op::cast, {x}, attrs({{"dtype", Any(dtype)}}));
    return at().op(op::bitwise_xor, {bits, number_constant(dtype, 128)});
  }

  // x with zeros at the end of its last axis, so that kernels read whole words. What they are
  // multiplied by is 0.
  Operand in_whole_words(const Operand& x) {
    const TensorType& type = *known_tensor(x);
    const auto extent = type.dims.back().as_const();
    if (!extent || *extent % kBytesPerWord == 0) return x;
    std::vector<Dim> before(type.dims.size(), Dim(0)), after = before;
    after.back() = Dim(kBytesPerWord - *extent % kBytesPerWord);
    return at().op(op::pad, {x, Operand()},
                   attrs({{"before", attr_dims(before)}, {"after", attr_dims(after)}}));
  }

  Operand as_i32(const Operand& x) { return at().op(op::cast, {x}, attrs({{"dtype", Any(i32)}})); }

  // Packed in panels as wide as the tiles of the kernel that reads them, or half as wide if that
  // leaves fewer columns of the last one empty.
  Operand pack(const Operand& x, int64_t batch, std::optional<int64_t> columns) {
    const loop::Tiling tiling = loop::tabled_tiling({i32, columns, std::nullopt}, cx_.target);
    const int64_t lanes = loop::vector_lanes(i32.bytes(), cx_.target);
    int64_t width = loop::panel_width(tiling, i32, cx_.target);
    if (columns) {
      const int64_t padded = round_up(*columns, lanes);
      if (round_up(*columns, width) > padded + padded / 8) width = lanes;
    }
    if (x.is<Constant>()) ++cx_.packed_constants;
    return at().op(op::pack_words, {x}, attrs({{"width", Any(width)}, {"batch", Any(batch)}}));
  }

  // sum b - k * zb over these axes, for each column.
  Operand sums(const Side& b, const std::vector<int64_t>& axes, bool keepdims, int64_t k) {
    Operand sum = at().op(op::reduce_sum, {as_i32(b.x)},
                          attrs({{"axes", attr_ints(axes)}, {"keepdims", Any(keepdims)}}));
    if (!b.zero) return sum;
    const Operand zeros =
        at().op(op::mul, {as_i32(b.zero), number_constant(i32, static_cast<int32_t>(k))});
    return at().op(op::sub, {sum, zeros});
  }

  Operand less_zero_of_a(const Operand& product, const Side& a, const Operand& sums) {
    return at().op(op::sub, {product, at().op(op::mul, {as_i32(a.zero), sums})});
  }

  Builder& at() { return builder(); }

  PassContext& cx_;
};

}  // namespace

Module pack_integer_products(const Module& module, PassContext& cx) {
  const bool multiplies_words = cx.target.dot_products || cx.target.pair_products;
  return cx.evaluator && multiplies_words ? Packer(cx).run(module) : module;
}

}  // namespace tenon::graph

#include "graph/pass/choose_layouts.h"

#include <optional>
#include <unordered_set>

#include "graph/ir/permutation.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// Permutations for images of `rank`, which have rank - 2 spatial axes.
struct Layouts {
  std::vector<int64_t> to_last = {0};    // NCHW -> NHWC
  std::vector<int64_t> to_first;         // NHWC -> NCHW
  std::vector<int64_t> weights_to_last;  // OIHW -> HWIO

  explicit Layouts(int64_t rank) {
    for (int64_t axis = 2; axis < rank; ++axis) {
      to_last.push_back(axis);
      weights_to_last.push_back(axis);
    }
    to_last.push_back(1);
    to_first = inverse_permutation(to_last);
    weights_to_last.insert(weights_to_last.end(), {1, 0});
  }
};

Operand transposed(Builder& b, const Operand& x, const std::vector<int64_t>& perm) {
  if (auto inner = as_transposed(b, x)) {
    const auto composed = compose_permutations(inner->perm, perm);
    if (is_identity(composed)) return inner->source;
    return b.op(op::transpose, {inner->source}, attrs({{"perm", attr_ints(composed)}}));
  }
  return b.op(op::transpose, {x}, attrs({{"perm", attr_ints(perm)}}));
}

// ---- operators on images, run channels-last ----

// Transposing pays for convolutions; a pooling only follows them.
Operand image_op_last(Builder& b, const Call& call) {
  auto* x = known_tensor(call.args[0]);
  if (!x || x->rank < 3 || is_channels_last(call)) return Operand();
  const bool has_weights = call.args.size() > 1;
  if (!has_weights && !as_transposed(b, call.args[0])) return Operand();
  if (auto* indices = call.attrs.find("indices"); indices && indices->as<bool>()) {
    return Operand();
  }
  const Layouts layouts(x->rank);
  std::vector<Operand> args(call.args.begin(), call.args.end());
  args[0] = transposed(b, args[0], layouts.to_last);
  if (args.size() > 1 && args[1]) args[1] = transposed(b, args[1], layouts.weights_to_last);
  Attrs attributes = call.attrs;
  attributes.set("layout", Any(String(kChannelsLast)));
  return transposed(b, b.op(call.callee, args, attributes), layouts.to_first);
}

// ---- moving transposes down ----
// With t = transpose(s, p): op(t) = transpose(op'(s), p), where axis a of t is axis p[a] of s.

// An operand of t's rank with its axes in the order of s: the source of the same transpose, or a
// constant, which is transposed back at compile time. Null for others.
Operand permuted_back(Builder& b, const Operand& operand, const Transposed& t) {
  if (auto other = as_transposed(b, operand); other && other->perm == t.perm) return other->source;
  return operand.is<Constant>() ? transposed(b, operand, inverse_permutation(t.perm)) : Operand();
}

Operand sink_broadcast(Builder& b, const Call& call, const Transposed& t) {
  const size_t rank = t.perm.size();
  std::vector<Operand> args;
  for (const Operand& arg : call.args) {
    auto* type = known_tensor(arg);
    if (!arg) {
      args.push_back(arg);
    } else if (!type || type->dims.size() > rank) {
      return Operand();
    } else if (auto other = as_transposed(b, arg); other && other->perm == t.perm) {
      args.push_back(other->source);
    } else if (has_one_element(type->dims)) {
      args.push_back(type->rank == 0 ? arg : reshaped(b, arg, {}));
    } else {
      // A constant of lower rank is first reshaped to t's rank.
      Operand back;
      if (type->dims.size() == rank) {
        back = permuted_back(b, arg, t);
      } else if (arg.is<Constant>()) {
        std::vector<Dim> shape(rank - type->dims.size(), Dim(1));
        shape.insert(shape.end(), type->dims.begin(), type->dims.end());
        back = transposed(b, reshaped(b, arg, shape), inverse_permutation(t.perm));
      }
      if (!back) return Operand();
      args.push_back(back);
    }
  }
  return transposed(b, b.op(call.callee, args, call.attrs), t.perm);
}

// One value for each axis of t, or none, in the order of the axes of s.
template <class T>
std::vector<T> per_axis_before(const Array<T>& of_t, const Transposed& t) {
  std::vector<T> of_s(of_t.begin(), of_t.end());
  for (size_t i = 0; i < of_t.size(); ++i) of_s[static_cast<size_t>(t.perm[i])] = of_t[i];
  return of_s;
}

// The attributes of a call on t, translated to the axes of s; nullopt if an axis would vanish.
std::optional<Attrs> attributes_before(const Call& call, const Transposed& t) {
  const int64_t rank = static_cast<int64_t>(t.perm.size());
  // An axis that the tensor doesn't have means nothing: one scale has no axis.
  auto axis_before = [&](int64_t axis) {
    const int64_t at = normalised_axis(axis, rank);
    return at >= 0 && at < rank ? t.perm[static_cast<size_t>(at)] : axis;
  };
  if (auto* keep = call.attrs.find("keepdims"); keep && !keep->as<bool>()) return std::nullopt;
  Attrs now = call.attrs;
  if (auto* axis = call.attrs.find("axis")) now.set("axis", Any(axis_before(axis->as<int64_t>())));
  if (auto* axes = call.attrs.find("axes")) {
    std::vector<int64_t> before;
    for (int64_t axis : axes->as<Array<int64_t>>()) before.push_back(axis_before(axis));
    now.set("axes", attr_ints(before));
  }
  for (const char* name : {"before", "after", "sizes"}) {
    if (auto* sizes = call.attrs.find(name)) {
      now.set(name, attr_dims(per_axis_before(sizes->as<Array<Dim>>(), t)));
    }
  }
  if (auto* scales = call.attrs.find("scales")) {
    now.set("scales", attr_floats(per_axis_before(scales->as<Array<double>>(), t)));
  }
  return now;
}

Operand sink_named_axes(Builder& b, const Call& call, const Transposed& t) {
  const auto attributes = attributes_before(call, t);
  auto* first = known_tensor(call.args[0]);
  if (!attributes || !first || first->dims.size() != t.perm.size()) return Operand();
  std::vector<Operand> args;
  for (const Operand& arg : call.args) {
    auto* type = known_tensor(arg);
    if (arg && !type) return Operand();
    const bool whole = type && type->dims.size() == t.perm.size();
    args.push_back(whole ? permuted_back(b, arg, t) : arg);
    if (arg && !args.back()) return Operand();
  }
  return transposed(b, b.op(call.callee, args, *attributes), t.perm);
}

// Values that a convolution takes, perhaps through operators that a transposition moves through.
class ImagesOfConvolutions {
 public:
  void read(const Block& block) {
    for (size_t i = block.bindings.size(); i-- > 0;) {
      const Binding& binding = *block.bindings[i];
      for_each_block(binding.value, [&](const BlockRef& inner) { read(*inner); });
      const Operator* op = operator_of(binding.value);
      if (!op) continue;
      const auto& args = binding.value.as<Call>()->args;
      const bool is_convolution = op->layout == LayoutRule::kImage && args.size() > 1;
      if (is_convolution) {
        add(args[0]);
      } else if (contains(*binding.var) && may_move(*op)) {
        for (const Operand& arg : args) add(arg);
      }
    }
  }
  bool contains(const Var& var) const { return found_.contains(&var); }

 private:
  static bool may_move(const Operator& op) {
    return op.layout != LayoutRule::kByKind || op.kind == OpKind::kElementwise ||
           op.kind == OpKind::kBroadcast;
  }
  void add(const Operand& operand) {
    if (const Var* var = operand.as<Var>()) found_.insert(var);
  }

  std::unordered_set<const Var*> found_;
};

class LayoutChooser : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override {
    to_convolutions_ = {};
    to_convolutions_.read(*function->body);
  }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const Operator* op = operator_of(value);
    if (!op) return keep(var, value);
    const Call& call = *value.as<Call>();
    if (op->layout == LayoutRule::kImage) {
      const Operand last = image_op_last(builder(), call);
      return last ? of_image(last) : keep(var, value);
    }
    for (const Operand& arg : call.args) {
      auto t = as_transposed(builder(), arg);
      // Transposes of other ranks are often those of matrices, which stay where they are.
      if (!t || (t->perm.size() != 4 && !images_.contains(arg.as<Var>()))) continue;
      if (is_op(call, op::resize) && !moves_through_resize(*var, call)) return keep(var, value);
      const Operand sunk = sink(*op, call, *t);
      return sunk ? of_image(sunk) : keep(var, value);
    }
    return keep(var, value);
  }

 private:
  Operand of_image(const Operand& transposed) {
    if (const Var* var = transposed.as<Var>()) images_.insert(var);
    return transposed;
  }

  // An image that no convolution takes is transposed more cheaply before it is enlarged. Other
  // operands have values for each axis, known at run time.
  bool moves_through_resize(const Var& var, const Call& call) const {
    const bool has_one_operand = std::none_of(call.args.begin() + 1, call.args.end(),
                                              [](const Operand& arg) { return bool(arg); });
    return has_one_operand && to_convolutions_.contains(var);
  }

  Operand sink(const Operator& op, const Call& call, const Transposed& t) {
    if (op.layout == LayoutRule::kNamedAxes) return sink_named_axes(builder(), call, t);
    if (op.kind == OpKind::kElementwise && call.args.size() == 1) {
      return transposed(builder(), builder().op(call.callee, {t.source}, call.attrs), t.perm);
    }
    if (op.kind == OpKind::kBroadcast) return sink_broadcast(builder(), call, t);
    return Operand();
  }

  std::unordered_set<const Var*> images_;  // transposed from channels-last
  ImagesOfConvolutions to_convolutions_;
};

}  // namespace

Module choose_layouts(const Module& module, PassContext&) {
  return LayoutChooser().run(module);
}

}  // namespace tenon::graph

#include "graph/pass/combine_layer_norm.h"

#include <unordered_map>

#include "graph/ir/rewrite.h"
#include "graph/ir/use_def.h"
#include "graph/pass/remove_dead_code.h"

namespace tenon::graph {
namespace {

// A chain that was found; its operands belong to the original function.
struct Chain {
  Operand x, scale, bias;
  int64_t axis;
  double epsilon;
  Span span;  // of all its parts
};

class Finder {
 public:
  explicit Finder(const FunctionRef& function) : use_def_(function) { read(function->body); }

  // The chains, keyed by the variable of their last binding.
  std::unordered_map<const Var*, Chain> take() { return std::move(chains_); }

 private:
  // A chain lies within one block, so nothing moves into a loop.
  void read(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      for_each_block(binding->value, [this](const BlockRef& inner) { read(inner); });
    }
    block_ = block.get();
    for (const auto& binding : block->bindings) match(*binding);
  }

  void match(const Binding& end) {
    if (const Call* div = as_op(end.value, op::div)) {
      if (auto chain = normalisation(*div, end.span)) chains_[end.var.get()] = *chain;
    } else if (const Call* mul = as_op(end.value, op::mul)) {
      extend(end, *mul, &Chain::scale);
    } else if (const Call* add = as_op(end.value, op::add)) {
      extend(end, *add, &Chain::bias);
    }
  }

  // The call of `name` that `operand` is bound to, if it has exactly `uses` uses.
  const Call* call_of(const Operand& operand, OperatorName name, int64_t uses) const {
    const UseDef::Place place = use_def_.definition(operand);
    if (!place || place.block != block_ || use_def_.uses(operand) != uses) return nullptr;
    return as_op(place.binding->value, name);
  }

  Span spans(std::initializer_list<Operand> operands) const {
    Span all;
    for (const Operand& o : operands) {
      all = Span::merge(all, use_def_.definition(o).binding->span);
    }
    return all;
  }

  // A mean over the last axes, kept as size 1; `axis` receives the first of them.
  const Call* mean_of(const Operand& operand, int64_t* axis) const {
    const Call* mean = call_of(operand, op::reduce_mean, 1);
    const TensorType* type = mean ? known_tensor(mean->args[0]) : nullptr;
    if (!type || !mean->attrs.at("keepdims").as<bool>()) return nullptr;
    const auto axes = mean->attrs.at("axes").as<Array<int64_t>>();
    if (axes.empty()) return nullptr;
    *axis = type->rank - static_cast<int64_t>(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (normalised_axis(axes[i], type->rank) != *axis + static_cast<int64_t>(i)) return nullptr;
    }
    return mean;
  }

  std::optional<Chain> normalisation(const Call& div, const Span& end) const {
    const Operand& centred = div.args[0];
    const Call* root = call_of(div.args[1], op::sqrt, 1);
    const Call* sum = root ? call_of(root->args[0], op::add, 1) : nullptr;
    if (!sum) return std::nullopt;
    for (int side : {0, 1}) {
      const std::optional<double> epsilon = single_number(sum->args[1 - side]);
      int64_t axis, centred_axis;
      const Call* variance = epsilon ? mean_of(sum->args[side], &axis) : nullptr;
      if (!variance || !is_square(variance->args[0], centred)) continue;
      // A constant of a higher rank gives the result that rank.
      if (known_tensor(sum->args[1 - side])->rank > known_tensor(sum->args[side])->rank) continue;
      const Call* sub = call_of(centred, op::sub, 3);
      const Call* mean = sub ? mean_of(sub->args[1], &centred_axis) : nullptr;
      if (!mean || mean->args[0] != sub->args[0] || axis != centred_axis) continue;
      const DataType dtype = known_tensor(sub->args[0])->dtype;
      if (dtype != f32 && dtype != f64) continue;
      const Span parts = spans(
          {sub->args[1], centred, variance->args[0], sum->args[side], root->args[0], div.args[1]});
      return Chain{sub->args[0], {}, {}, axis, *epsilon, Span::merge(parts, end)};
    }
    return std::nullopt;
  }

  bool is_square(const Operand& operand, const Operand& x) const {
    const Call* mul = call_of(operand, op::mul, 1);
    return mul && mul->args[0] == x && mul->args[1] == x;
  }

  // Extends the chain that one operand ends by a product with the scale or a sum with the bias.
  void extend(const Binding& binding, const Call& call, Operand Chain::*part) {
    for (int side : {0, 1}) {
      auto* end = call.args[side].as<Var>();
      auto found = end ? chains_.find(end) : chains_.end();
      if (found == chains_.end() || use_def_.only_use(call.args[side]).block != block_) continue;
      Chain chain = found->second;
      const Operand& other = call.args[1 - side];
      if (chain.bias || chain.*part || !fits(other, chain)) continue;
      chain.*part = other;
      chain.span = Span::merge(chain.span, binding.span);
      chains_.erase(found);
      chains_[binding.var.get()] = chain;
      return;
    }
  }

  // Whether `part` broadcasts to the normalised axes of x without widening them.
  static bool fits(const Operand& part, const Chain& chain) {
    const TensorType *own = known_tensor(part), *x = known_tensor(chain.x);
    if (!own || own->dtype != x->dtype || own->rank > x->rank - chain.axis) return false;
    for (int64_t i = 0; i < own->rank; ++i) {
      const Dim &d = own->dims[i], &of_x = x->dims[x->rank - own->rank + i];
      if (!d.is_const(1) && !proves_equal(d, of_x)) return false;
    }
    return true;
  }

  const UseDef use_def_;
  const Block* block_ = nullptr;  // that is searched
  std::unordered_map<const Var*, Chain> chains_;
};

class Combiner : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override { chains_ = Finder(function).take(); }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    auto found = chains_.find(var.get());
    if (found == chains_.end()) return keep(var, value);
    const Chain& chain = found->second;
    builder().at(chain.span);
    auto now = [this](const Operand& old) { return old ? mapped(old) : old; };
    return builder().op(op::layer_norm, {mapped(chain.x), now(chain.scale), now(chain.bias)},
                        attrs({{"axis", chain.axis}, {"epsilon", chain.epsilon}}));
  }

 private:
  std::unordered_map<const Var*, Chain> chains_;
};

}  // namespace

Module combine_layer_norm(const Module& module, PassContext& cx) {
  // The parts of the chains are dead now.
  return remove_dead_code(Combiner().run(module), cx);
}

}  // namespace tenon::graph

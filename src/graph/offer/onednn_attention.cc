#include "graph/offer/onednn_attention.h"

#include <cmath>
#include <optional>

#include "graph/ir/permutation.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// So few scores stay in the caches anyway, and batched products are as fast (Zen 5).
constexpr int64_t kFewKeys = 96;

class Finder {
 public:
  Finder(const FunctionRef& function, const UseDef& use_def) : use_def_(use_def) {
    find(function->body);
  }

  std::unordered_map<const Var*, AttentionMatch> found;

 private:
  void find(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      for_each_block(binding->value, [this](const BlockRef& nested) { find(nested); });
    }
    block_ = block.get();
    for (const auto& binding : block->bindings) match(*binding);
  }

  void match(const Binding& product) {
    const Call* last = as_op(product.value, op::matmul);
    if (!last || !fits(last->args[0]) || !fits(last->args[1])) return;
    AttentionMatch m;
    m.span = product.span;
    m.v = last->args[1];
    const Call* softmax = take(last->args[0], op::softmax, &m);
    if (!softmax) return;
    const int64_t rank = known_tensor(last->args[0], f32)->rank,
                  axis = softmax->attrs.at("axis").as<int64_t>();
    if (axis != -1 && axis != rank - 1) return;
    if (known_tensor(m.v, f32)->rank != rank) return;
    const Call* first = scores(softmax->args[0], &m);
    if (!first) return;
    m.q = first->args[0];
    m.k = first->args[1];
    const std::optional<int64_t> keys = known_tensor(softmax->args[0], f32)->dims.back().as_const();
    if (keys && *keys < kFewKeys) return;
    for (const Operand& operand : {m.q, m.k}) {
      if (!fits(operand) || known_tensor(operand, f32)->rank != rank) return;
    }
    m.out_perm = identity_permutation(static_cast<size_t>(rank));
    const Var* root = product.var.get();
    if (const UseDef::Place next = use_def_.only_use(product.var); next.block == block_) {
      if (const Call* transpose = as_op(next.binding->value, op::transpose)) {
        m.out_perm = permutation_of(*transpose);
        m.inner.push_back(root);
        m.span = Span::merge(m.span, next.binding->span);
        root = next.binding->var.get();
      }
    }
    found.emplace(root, std::move(m));
  }

  // The product whose scores, perhaps scaled and masked, `value` has.
  const Call* scores(Operand value, AttentionMatch* m) {
    if (const Call* sum = call_of(value, op::add)) {
      const bool swapped = !leads_to_product(sum->args[0]);
      const Operand& rest = sum->args[swapped ? 1 : 0];
      const Operand& mask = sum->args[swapped ? 0 : 1];
      const TensorType* added = known_tensor(mask, f32);
      if (!added || added->rank < 1 || !same_dims(type_of(rest), type_of(value))) return nullptr;
      if (!take(value, op::add, m)) return nullptr;
      m->mask = mask;
      value = rest;
    }
    if (const auto scaled = scaling(value)) {
      // The function multiplies by a number of f32, also where the program divides.
      if (!std::isnormal(static_cast<float>(scaled->factor))) return nullptr;
      if (!same_dims(type_of(scaled->rest), type_of(value)) || !take(value, scaled->name, m))
        return nullptr;
      m->scale = scaled->factor;
      value = scaled->rest;
    }
    return take(value, op::matmul, m);
  }

  struct Scaling {
    Operand rest;
    OperatorName name;
    double factor;
  };

  // A product of `rest` and a number, or its quotient by one.
  std::optional<Scaling> scaling(const Operand& value) const {
    if (const Call* product = call_of(value, op::mul)) {
      for (const size_t side : {0, 1}) {
        if (const auto number = single_number(product->args[side]))
          return Scaling{product->args[1 - side], op::mul, *number};
      }
    } else if (const Call* quotient = call_of(value, op::div)) {
      if (const auto number = single_number(quotient->args[1]))
        return Scaling{quotient->args[0], op::div, 1 / *number};
    }
    return std::nullopt;
  }

  bool leads_to_product(const Operand& value) const {
    const auto scaled = scaling(value);
    return call_of(scaled ? scaled->rest : value, op::matmul);
  }

  // The call of this operator that defines the value in this block.
  const Call* call_of(const Operand& value, OperatorName name) const {
    const UseDef::Place place = use_def_.definition(value);
    return place && place.block == block_ ? as_op(place.binding->value, name) : nullptr;
  }

  // The same if nothing else uses it: it becomes part of the match.
  const Call* take(const Operand& value, OperatorName name, AttentionMatch* m) {
    const Call* call = call_of(value, name);
    if (!call || use_def_.uses(value) != 1) return nullptr;
    m->inner.push_back(value.as<Var>());
    m->span = Span::merge(m->span, use_def_.definition(value).binding->span);
    return call;
  }

  static bool fits(const Operand& operand) {
    const TensorType* type = known_tensor(operand, f32);
    return type && type->rank >= 3 && type->rank <= 4;
  }

  const UseDef& use_def_;
  const Block* block_ = nullptr;  // that is searched
};

}  // namespace

std::unordered_map<const Var*, AttentionMatch> find_attention(const FunctionRef& function,
                                                              const UseDef& use_def) {
  return std::move(Finder(function, use_def).found);
}

}  // namespace tenon::graph

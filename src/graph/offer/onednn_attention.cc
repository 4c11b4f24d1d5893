#include "graph/offer/onednn_attention.h"

#include <numeric>
#include <optional>

#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

const TensorType* known_f32(const Operand& operand) {
  auto* tensor = known_tensor(operand);
  return tensor && tensor->dtype == f32 ? tensor : nullptr;
}

// So few scores stay in the caches anyway, and batched products are as fast (Zen 5).
constexpr int64_t kFewKeys = 96;

class Finder {
 public:
  explicit Finder(const FunctionRef& function) : uses_(count_uses(function)) {
    find(function->body);
  }

  std::unordered_map<const Var*, AttentionMatch> found;

 private:
  struct Definition {
    const Binding* binding;
    const Block* block;
  };

  void find(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      definitions_[binding->var.get()] = {binding.get(), block.get()};
      for_each_operand(binding->value, [&](const Operand& operand) {
        if (auto* var = operand.as<Var>()) consumers_[var] = {binding.get(), block.get()};
      });
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
    const int64_t rank = known_f32(last->args[0])->rank,
                  axis = softmax->attrs.at("axis").as<int64_t>();
    if (axis != -1 && axis != rank - 1) return;
    if (known_f32(m.v)->rank != rank) return;
    const Call* first = scores(softmax->args[0], &m);
    if (!first) return;
    m.q = first->args[0];
    m.k = first->args[1];
    const std::optional<int64_t> keys = known_f32(softmax->args[0])->dims.back().as_const();
    if (keys && *keys < kFewKeys) return;
    for (const Operand& operand : {m.q, m.k}) {
      if (!fits(operand) || known_f32(operand)->rank != rank) return;
    }
    m.out_perm.resize(static_cast<size_t>(rank));
    std::iota(m.out_perm.begin(), m.out_perm.end(), 0);
    const Var* root = product.var.get();
    if (const Definition* next = only_consumer(product.var)) {
      if (const Call* transpose = as_op(next->binding->value, op::transpose)) {
        m.out_perm = permutation_of(*transpose);
        m.inner.push_back(root);
        m.span = Span::merge(m.span, next->binding->span);
        root = next->binding->var.get();
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
      const TensorType* added = known_f32(mask);
      if (!added || added->rank < 1 || !same_dims(type_of(rest), type_of(value))) return nullptr;
      if (!take(value, op::add, m)) return nullptr;
      m->mask = mask;
      value = rest;
    }
    for (const bool divides : {false, true}) {
      const OperatorName name = divides ? op::div : op::mul;
      const Call* scaled = call_of(value, name);
      if (!scaled) continue;
      const bool swapped = !divides && single_number(scaled->args[0]);
      const std::optional<double> number = single_number(scaled->args[swapped ? 0 : 1]);
      const Operand& rest = scaled->args[swapped ? 1 : 0];
      if (!number || !same_dims(type_of(rest), type_of(value)) || !take(value, name, m))
        return nullptr;
      m->scale = divides ? 1 / *number : *number;
      value = rest;
    }
    return take(value, op::matmul, m);
  }

  bool leads_to_product(const Operand& value) const {
    if (call_of(value, op::matmul)) return true;
    for (const OperatorName name : {op::mul, op::div}) {
      const Call* scaled = call_of(value, name);
      if (scaled && (call_of(scaled->args[0], op::matmul) || call_of(scaled->args[1], op::matmul)))
        return true;
    }
    return false;
  }

  // The call of this operator that defines the value in this block.
  const Call* call_of(const Operand& value, OperatorName name) const {
    auto it = definitions_.find(value.as<Var>());
    if (it == definitions_.end() || it->second.block != block_) return nullptr;
    return as_op(it->second.binding->value, name);
  }

  // The same if nothing else uses it: it becomes part of the match.
  const Call* take(const Operand& value, OperatorName name, AttentionMatch* m) {
    const Call* call = call_of(value, name);
    const Var* var = value.as<Var>();
    if (!call || uses_[var] != 1) return nullptr;
    m->inner.push_back(var);
    m->span = Span::merge(m->span, definitions_.at(var).binding->span);
    return call;
  }

  const Definition* only_consumer(const VarRef& value) {
    auto it = consumers_.find(value.get());
    if (it == consumers_.end() || uses_[value.get()] != 1 || it->second.block != block_)
      return nullptr;
    return &it->second;
  }

  static bool fits(const Operand& operand) {
    const TensorType* type = known_f32(operand);
    return type && type->rank >= 3 && type->rank <= 4;
  }

  std::unordered_map<const Var*, int64_t> uses_;
  std::unordered_map<const Var*, Definition> definitions_, consumers_;
  const Block* block_ = nullptr;
};

}  // namespace

std::unordered_map<const Var*, AttentionMatch> find_attention(const FunctionRef& function) {
  return std::move(Finder(function).found);
}

}  // namespace tenon::graph

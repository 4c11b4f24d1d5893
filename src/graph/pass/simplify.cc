#include "graph/pass/simplify.h"

#include <algorithm>
#include <unordered_map>

#include "graph/ir/condition.h"
#include "graph/ir/effects.h"
#include "graph/ir/infer_match_shape.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"
#include "graph/ir/walk.h"
#include "graph/op/strings.h"
#include "graph/pass/remove_dead_code.h"
#include "graph/pass/simplify_rules.h"
#include "object/reflect.h"
#include "support/poll.h"

namespace tenon::graph {
namespace {

// A constant integer tensor with the dtype and the constant dimensions of `type`.
Operand constant_integers(const TensorType& type, const std::vector<int64_t>& elements) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.dims) shape.push_back(dim.as_const().value());
  Tensor tensor = Tensor::empty(shape, type.dtype);
  const int64_t bytes = type.dtype.bytes();
  auto* out = static_cast<char*>(tensor.data());
  // Copies the low bytes of each element (little-endian).
  for (size_t i = 0; i < elements.size(); ++i) {
    std::memcpy(out + static_cast<int64_t>(i) * bytes, &elements[i], static_cast<size_t>(bytes));
  }
  return constant(tensor.as_read_only());
}

// The calls so far whose value a later equal call may share, innermost block last. Calls that read
// state are shared only within one block, up to the next Ordered call.
class Available {
 public:
  void open() { scopes_.emplace_back(); }
  void close() {
    const bool changed = scopes_.back().changes_state;
    scopes_.pop_back();
    if (changed && !scopes_.empty()) change_state();
  }
  // State may change here, so values that were read before can't be shared any more.
  void change_state() {
    scopes_.back().reads.clear();
    scopes_.back().changes_state = true;
  }

  Operand find(const Call& call, Effect effect) const {
    if (effect == Effect::Reads) return find_in(scopes_.back().reads, call);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (Operand found = find_in(scope->pure, call)) return found;
    }
    return Operand();
  }
  void add(const Call* call, Effect effect, const Operand& result) {
    Made& made = effect == Effect::Reads ? scopes_.back().reads : scopes_.back().pure;
    made.emplace(hash(*call), std::pair(Ref<const Call>(call), result));
  }

 private:
  using Made = std::unordered_multimap<uint64_t, std::pair<Ref<const Call>, Operand>>;
  struct Scope {
    Made pure, reads;
    bool changes_state = false;
  };

  static Operand find_in(const Made& made, const Call& call) {
    auto [begin, end] = made.equal_range(hash(call));
    for (auto it = begin; it != end; ++it) {
      if (same(*it->second.first, call)) return it->second.second;
    }
    return Operand();
  }
  static uint64_t hash(const Call& call) {
    uint64_t h = std::hash<std::string_view>()(call.callee);
    for (const Operand& arg : call.args) {
      h = (h ^ reinterpret_cast<uintptr_t>(arg.get())) * 0x9e3779b97f4a7c15;
    }
    return h ^ structural_hash(Any(call.attrs));
  }
  static bool same(const Call& a, const Call& b) {
    if (a.kind != b.kind || !(a.callee == b.callee) || a.args.size() != b.args.size()) return false;
    for (size_t i = 0; i < a.args.size(); ++i) {
      if (a.args[i] != b.args[i]) return false;
    }
    return structural_equal(Any(a.attrs), Any(b.attrs)) &&
           structural_equal(Any(a.result_type), Any(b.result_type));
  }

  std::vector<Scope> scopes_;
};

class Simplifier : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override {
    matches_.clear();
    find_matches(function->body);
  }
  void open_block() override { available_.open(); }
  void close_block() override { available_.close(); }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (auto* check = value.as<Check>(); check && proved(check->kind, check->left, check->right)) {
      return builder().bind_typed(make<Tuple>(Array<Operand>()), unit_type());
    }
    if (auto* match = value.as<MatchShape>();
        match && is_subtype(type_of(match->value), var->type, variances())) {
      return match->value;
    }
    if (auto* field = value.as<Field>()) {
      auto definition = builder().definition_of(field->tuple);
      if (auto* tuple = definition.as<Tuple>()) return tuple->fields[field->index];
    }
    auto* call = value.as<Call>();
    const Operator* op = operator_of(value);
    if (!op) {
      if (!call) return keep(var, value);
      const Effect effect = effect_of(*call, var->type);
      if (effect == Effect::Ordered) available_.change_state();
      const bool shared = effect != Effect::Ordered && call->kind == CalleeKind::kPacked &&
                          !memory_intrinsic(*call);
      return shared ? share(var, value, effect) : keep(var, value);
    }
    if (op->expand) return op->expand(builder(), *call);
    if (computes_on_strings(*op, *call)) return expand_strings(builder(), *call, var->type);
    if (auto* type = var->type.as<TensorType>()) {
      if (Operand known = known_value(*type)) return known;
      if (Operand known = op->value ? inferred_value(value) : Operand();
          known && !is_refused(var, known)) {
        return known;
      }
    }
    if (Operand simpler = apply_simplify_rules(builder(), *call, var->type);
        simpler && !is_refused(var, simpler)) {
      return simpler;
    }
    return share(var, value, Effect::Pure);
  }

 private:
  void find_matches(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      if (const auto* match = binding->value.as<MatchShape>()) {
        if (const auto* var = match->value.as<Var>()) matches_[var].push_back(match);
      }
      for_each_block(binding->value, [this](const BlockRef& inner) { find_matches(inner); });
    }
  }
  bool is_refused(const VarRef& var, const Operand& now) const {
    const auto found = matches_.find(var.get());
    return found != matches_.end() &&
           std::ranges::any_of(found->second,
                               [&](const MatchShape* match) { return refuses(*match, now); });
  }

  Operand share(const VarRef& var, const ExprRef& value, Effect effect) {
    auto* call = value.as<Call>();
    if (Operand same = available_.find(*call, effect)) return same;
    Operand result = keep(var, value);
    available_.add(call, effect, result);
    return result;
  }

  // The value as a constant, if the type carries it as numbers.
  static Operand known_value(const TensorType& type) {
    if (!type.value_known) return Operand();
    std::vector<int64_t> elements;
    for (const Dim& value : type.values) {
      auto number = value.as_const();
      if (!number) return Operand();
      elements.push_back(*number);
    }
    return constant_integers(type, elements);
  }

  // The same if its operands are numbers that they weren't yet when the type was inferred.
  Operand inferred_value(const ExprRef& value) {
    const bool has_numbers = std::ranges::all_of(value.as<Call>()->args, [](const Operand& arg) {
      const TensorType* type = arg ? known_tensor(type_of(arg)) : nullptr;
      return !arg || (type && type->value_known);
    });
    if (!has_numbers) return Operand();
    try {
      const Inferred now = builder().infer(value);
      const TensorType* type = known_tensor(now.type);
      return type && now.conditions.empty() ? known_value(*type) : Operand();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Internal) throw;
      poll();            // what is to stop all of compiling
      return Operand();  // it is to fail only when it runs
    }
  }

  Available available_;
  std::unordered_map<const Var*, std::vector<const MatchShape*>> matches_;  // of each variable
};

}  // namespace

Module simplify(const Module& module, PassContext& cx) {
  return remove_dead_code(Simplifier().run(module), cx);
}

}  // namespace tenon::graph

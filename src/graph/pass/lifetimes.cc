#include "graph/pass/lifetimes.h"

#include <algorithm>
#include <numeric>

#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/walk.h"
#include "loop/symbol_set.h"

namespace tenon::graph {
namespace {

// Beyond so many, a value's memory isn't followed further.
constexpr size_t kMaxOwners = 64;

// Whether the call reads or writes its operands and keeps none of them.
bool keeps_nothing(const Call& call) {
  if (call.kind == CalleeKind::kKernel) return true;
  if (call.kind != CalleeKind::kPacked) return false;
  if (const auto intrinsic = memory_intrinsic(call)) {
    return intrinsic == MemoryIntrinsic::kElement || intrinsic == MemoryIntrinsic::kRank;
  }
  return !keeps_arguments(call);
}

// Whether the value of the binding is (a part of) its operands, in their memory.
bool passes_on(const ExprRef& value) {
  return memory_intrinsic(value) == MemoryIntrinsic::kReshape || value.is<MatchShape>() ||
         value.is<Tuple>() || value.is<Field>();
}

}  // namespace

Lifetimes::Lifetimes(const FunctionRef& function) {
  add_scope(-1, nullptr, false);
  for (const VarRef& param : function->params) know_symbols(param->type, -1, 0);
  block(function->body, 0);
  escape(function->body->result);
  finish();
}

int64_t Lifetimes::add_scope(int64_t parent, const Binding* binding, bool loops) {
  scopes_.push_back({parent, binding, next_ - 1, next_ - 1, loops});
  return static_cast<int64_t>(scopes_.size()) - 1;
}

void Lifetimes::know_symbols(const TypeRef& type, int64_t at, int64_t scope) {
  SymbolSet symbols;
  collect_symbols(type, &symbols);
  for (const std::string& symbol : symbols) {
    const auto [known, is_new] = symbols_.try_emplace(symbol, Known{at, scope});
    if (!is_new && !encloses(known->second.scope, scope)) known->second = {at, scope};
  }
}

void Lifetimes::block(const BlockRef& block, int64_t scope) {
  int64_t group_end = -1;
  for (const auto& binding : block->bindings) {
    const int64_t at = next_++;
    group_end = std::max(group_end, at + grouped_after(binding->value));
    visit(*binding, scope, group_end);
    know_symbols(binding->var->type, next_ - 1, scope);
  }
}

void Lifetimes::visit(const Binding& binding, int64_t scope, int64_t at) {
  const ExprRef& value = binding.value;
  const Var* var = binding.var.get();
  if (auto* loop = value.as<Loop>()) return visit_loop(binding, *loop, scope);
  if (auto* branch = value.as<If>()) {
    use(branch->condition, at, scope);
    return visit_branch(binding, {branch->then_block, branch->else_block}, scope);
  }
  if (auto* match = value.as<Match>()) {
    escape(match->value);
    return visit_branch(binding, match->arms.to_vector(), scope);
  }
  const auto intrinsic = memory_intrinsic(value);
  if (intrinsic == MemoryIntrinsic::kStorage) {
    PlannedValue made;
    made.storage = var;
    made.binding = &binding;
    made.device = device_of_storage(*value.as<Call>());
    made.bytes = bytes_of_storage(*value.as<Call>());
    made.life = {at, at};
    made.scope = scope;
    made.leader = values_.size();
    owners_[var] = {values_.size()};
    values_.push_back(std::move(made));
    return;
  }
  Owners all;
  for_each_operand(value, [&](const Operand& operand) {
    use(operand, at, scope);
    Owners sum;
    std::ranges::set_union(all, owners(operand), std::back_inserter(sum));
    all = std::move(sum);
  });
  if (intrinsic == MemoryIntrinsic::kTensor && !offset_of_tensor(*value.as<Call>()).is_const(0)) {
    escape(value.as<Call>()->args[0]);  // a plan has been made for it
  }
  const bool same_memory = intrinsic == MemoryIntrinsic::kTensor || passes_on(value);
  if (same_memory && all.size() <= kMaxOwners) {
    if (!all.empty()) owners_[var] = std::move(all);
    return;
  }
  auto* call = value.as<Call>();
  if (!call || !keeps_nothing(*call)) {
    for_each_operand(value, [&](const Operand& operand) { escape(operand); });
  }
  for_each_block(value, [&](const BlockRef& inner) { escape_all(inner); });
}

// A function literal runs at other times: what it captures isn't followed, nor what it makes.
void Lifetimes::escape_all(const BlockRef& block) {
  for (const auto& binding : block->bindings) {
    for_each_operand(binding->value, [&](const Operand& operand) { escape(operand); });
    for_each_block(binding->value, [&](const BlockRef& inner) { escape_all(inner); });
  }
  escape(block->result);
}

void Lifetimes::visit_branch(const Binding& binding, const std::vector<BlockRef>& arms,
                             int64_t scope) {
  std::vector<int64_t> scopes;
  std::vector<Owners> results;
  Owners all;
  for (const BlockRef& arm : arms) {
    scopes.push_back(add_scope(scope, &binding, false));
    block(arm, scopes.back());
    ++next_;  // what is made in the next arm isn't alive where this one ends
    use(arm->result, next_ - 1, scopes.back());
    results.push_back(owners(arm->result));
    Owners sum;
    std::ranges::set_union(all, results.back(), std::back_inserter(sum));
    all = std::move(sum);
  }
  ++next_;
  for (const int64_t arm : scopes) scopes_[static_cast<size_t>(arm)].end = next_ - 1;
  if (all.size() > kMaxOwners) {
    for (const BlockRef& arm : arms) escape(arm->result);
    return;
  }
  tie(results, scopes);
  if (!all.empty()) owners_[binding.var.get()] = std::move(all);
}

// Values that are all the results of arms, and made in these, can have one place.
void Lifetimes::tie(const std::vector<Owners>& results, const std::vector<int64_t>& arms) {
  std::optional<size_t> first;
  for (size_t i = 0; i < arms.size(); ++i) {
    // A tuple of several values has several places.
    std::optional<size_t> leader;
    for (const size_t value : results[i]) {
      if (!encloses(arms[i], values_[value].scope)) return;
      if (leader && values_[value].leader != *leader) return;
      leader = values_[value].leader;
    }
    if (!leader) continue;
    if (!first) {
      first = leader;
      continue;
    }
    if (values_[*first].device != values_[*leader].device) return;
    for (PlannedValue& member : values_) {
      if (member.leader == *leader) member.leader = *first;
    }
  }
}

void Lifetimes::visit_loop(const Binding& binding, const Loop& loop, int64_t scope) {
  // The next turn's values are made while those of the last are read.
  for (const Operand& init : loop.init) escape(init);
  const int64_t condition = add_scope(scope, &binding, true);
  block(loop.condition, condition);
  ++next_;
  use(loop.condition->result, next_ - 1, condition);
  const int64_t body = add_scope(scope, &binding, true);
  block(loop.body, body);
  escape(loop.body->result);
  ++next_;
  for (const int64_t inner : {condition, body}) {
    scopes_[static_cast<size_t>(inner)].begin = scopes_[static_cast<size_t>(condition)].begin;
    scopes_[static_cast<size_t>(inner)].end = next_ - 1;
  }
}

Lifetimes::Owners Lifetimes::owners(const Operand& operand) const {
  const auto found = owners_.find(operand.as<Var>());
  return found == owners_.end() ? Owners() : found->second;
}

void Lifetimes::use(const Operand& operand, int64_t at, int64_t scope) {
  for (const size_t value : owners(operand)) uses_.push_back({value, at, scope});
}

void Lifetimes::escape(const Operand& operand) {
  for (const size_t value : owners(operand)) values_[value].escapes = true;
}

void Lifetimes::finish() {
  for (const Use& use : uses_) {
    PlannedValue& value = values_[use.value];
    int64_t until = use.at;
    for (int64_t at = use.scope; at != value.scope && !encloses(at, value.scope);
         at = scope(at).parent) {
      if (scope(at).loops) until = scope(at).end;
    }
    value.life.last = std::max(value.life.last, until);
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!values_[i].escapes) values_[values_[i].leader].group.push_back(i);
  }
}

bool Lifetimes::encloses(int64_t outer, int64_t inner) const {
  while (inner > outer) inner = scope(inner).parent;  // a scope's parent has a lower number
  return inner == outer;
}

int64_t Lifetimes::common(int64_t a, int64_t b) const {
  while (a != b) (a > b ? a : b) = scope(std::max(a, b)).parent;
  return a;
}

namespace {

// Whether the size has a value, short of overflow, whatever its symbols are.
bool has_value(const DimNode& size) {
  if (size.kind == DimKind::kBcast) return false;
  if (size.kind == DimKind::kFloorDiv || size.kind == DimKind::kMod) {
    const Dim divisor(size.args[1]);
    if (!divisor.is_const() && lower_bound(divisor).value_or(0) < 1) return false;
  }
  return std::ranges::all_of(size.args, [](const auto& part) { return has_value(*part); });
}

// Whether a loop that doesn't turn may take that much: its size in bytes is neither large for small
// tensors nor a product of many sizes.
bool is_modest(const Dim& bytes) {
  const auto at = [&](int64_t size) {
    return evaluate(bytes, [size](std::string_view) { return std::optional(size); });
  };
  constexpr int64_t kMostOfOne = int64_t{16} << 20, kMostOfLarge = int64_t{1} << 40;
  return at(1).value_or(INT64_MAX) <= kMostOfOne && at(1024).value_or(INT64_MAX) <= kMostOfLarge;
}

}  // namespace

int64_t Lifetimes::outside_loops(int64_t at, const Dim& bytes, int64_t outermost) const {
  const bool is_safe = bytes.is_const() ||
                       (has_value(bytes.node()) && is_modest(bytes) && proves_nonnegative(bytes));
  if (!is_safe) return at;
  SymbolSet symbols;
  collect_symbols(bytes, &symbols);
  int64_t out = at;
  for (; at > outermost; at = scope(at).parent) {
    if (!scope(at).loops) {
      if (bytes.is_const()) continue;
      return out;  // an arm of a branch, which may not be taken
    }
    for (const std::string& symbol : symbols) {
      const auto bound = symbols_.find(symbol);
      if (bound == symbols_.end() || bound->second.at >= scope(at).begin ||
          !encloses(bound->second.scope, at)) {
        return out;
      }
    }
    out = scope(at).parent;
  }
  return out;
}

int64_t Lifetimes::child(int64_t outer, int64_t inner) const {
  while (scope(inner).parent != outer) inner = scope(inner).parent;
  return inner;
}

bool StorageHome::add(const PlannedValue& value) {
  const int64_t outside = lifetimes_.outside_loops(value.scope, value.bytes, outermost_);
  scope_ = scope_ < 0 ? outside : lifetimes_.common(scope_, outside);
  if (!first_ || value.life.first < first_->life.first) first_ = &value;
  return outside != value.scope;
}

const Binding* StorageHome::before() const {
  const Binding* entry = lifetimes_.entry(scope_, first_->scope);
  return entry ? entry : first_->binding;
}

const Binding* Lifetimes::entry(int64_t outer, int64_t inner) const {
  const Binding* through = nullptr;
  for (; inner != outer; inner = scope(inner).parent) through = scope(inner).binding;
  return through;
}

}  // namespace tenon::graph

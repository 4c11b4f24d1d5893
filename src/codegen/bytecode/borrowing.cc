#include "codegen/bytecode/borrowing.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/bytecode/packed_instruction.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/pattern.h"
#include "graph/ir/walk.h"
#include "support/components.h"
#include "support/poll.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only

namespace {

// Whether a register can borrow a value of the type.
bool can_be_borrowed(const TypeRef& type) {
  return type.is<AdtType>() || type.is<ArrayType>() || (type.is<TupleType>() && !is_unit(type));
}

// Which functions lead to which by tail calls. A call of a function value may lead to any function
// that is a value.
class TailCallGraph {
 public:
  explicit TailCallGraph(const Module& module) {
    for (const auto& [name, function] : module->functions) {
      numbers_.emplace(name.view(), numbers_.size());
    }
    values_ = numbers_.size();
    edges_.resize(values_ + 1);
    for (const auto& [name, function] : module->functions) {
      caller_ = numbers_.at(name.view());
      walk(*function->body, true);
    }
    components_.emplace(std::move(edges_));
  }

  bool is_value(std::string_view function) const { return taken_.contains(function); }
  bool may_lead_back(std::string_view caller, std::string_view callee) const {
    return components_->component_of(numbers_.at(caller)) ==
           components_->component_of(numbers_.at(callee));
  }

 private:
  void walk(const Block& block, bool tail) {
    for (const auto& binding : block.bindings) {
      poll();
      const bool in_tail = tail && is_result(block, *binding);
      if (auto* closure = binding->value.as<Closure>()) {
        const std::string_view name = closure->function.view();
        if (taken_.insert(name).second) edges_[values_].push_back(numbers_.at(name));
      } else if (auto* call = binding->value.as<Call>(); call && in_tail) {
        if (call->kind == CalleeKind::kGlobal) {
          edges_[caller_].push_back(numbers_.at(call->callee.view()));
        } else if (call->kind == CalleeKind::kClosure) {
          edges_[caller_].push_back(values_);
        }
      }
      const bool yields = binding->value.is<If>() || binding->value.is<Match>();
      for_each_block(binding->value,
                     [&](const BlockRef& inner) { walk(*inner, in_tail && yields); });
    }
  }

  std::unordered_map<std::string_view, size_t> numbers_;
  size_t values_ = 0;  // the node for every function that is a value
  size_t caller_ = 0;
  std::unordered_set<std::string_view> taken_;
  std::vector<std::vector<size_t>> edges_;
  std::optional<Components> components_;
};

// Assumes that everything is borrowed, and finds what must be owned.
class Analysis {
 public:
  explicit Analysis(const Module& module) : module_(module), tail_calls_(module) {}

  std::unordered_set<const Var*> run() {
    for (const auto& [name, function] : module_->functions) {
      if (tail_calls_.is_value(name.view())) continue;
      for (const VarRef& param : function->params) {
        if (can_be_borrowed(param->type)) borrowed_.insert(param.get());
      }
    }
    for (const auto& [name, function] : module_->functions) {
      caller_ = name.view();
      block(*function->body, true);
    }
    while (!owned_.empty()) {
      poll();
      const Var* var = owned_.back();
      owned_.pop_back();
      if (!borrowed_.erase(var)) continue;
      if (const auto found = owned_if_.find(var); found != owned_if_.end()) {
        owned_.insert(owned_.end(), found->second.begin(), found->second.end());
      }
    }
    std::erase_if(borrowed_, [](const Var* var) { return !can_be_borrowed(var->type); });
    return std::move(borrowed_);
  }

 private:
  // The numbers of fields of cells that are made in a block: bit n for n fields.
  using Sizes = uint64_t;
  static Sizes size_bit(size_t fields) { return Sizes{1} << std::min<size_t>(fields, 63); }

  // The variable, if it isn't known to be kept.
  const Var* candidate(const Operand& operand) const {
    const auto* var = operand.as<Var>();
    return var && borrowed_.contains(var) ? var : nullptr;
  }
  void own(const Operand& operand) {
    if (const Var* var = candidate(operand)) owned_.push_back(var);
  }
  // If `cause` is owned, so is `var`.
  void follows(const Var* cause, const Var* var) { owned_if_[cause].push_back(var); }

  Sizes block(const Block& block, bool tail) {
    Sizes made = 0;
    for (const auto& binding : block.bindings) {
      poll();
      made |= value(*binding, tail && is_result(block, *binding));
    }
    own(block.result);
    return made;
  }

  // Returns the cells that it makes.
  Sizes value(const Binding& binding, bool tail) {
    const ExprRef& value = binding.value;
    if (auto* match = value.as<Match>()) return matched(*match, tail);
    if (auto* call = value.as<Call>(); call && call->kind == CalleeKind::kGlobal) {
      called(*call, tail);
      return 0;
    }
    if (auto* field = value.as<Field>()) {
      if (const Var* whole = candidate(field->tuple)) part(whole, binding.var);
      return 0;
    }
    if (auto* same = value.as<MatchShape>()) {
      if (const Var* whole = candidate(same->value)) part(whole, binding.var);
      return 0;
    }
    if (const auto* call = value.as<Call>()) {
      given(*call);
    } else {
      for_each_operand(value, [this](const Operand& operand) { own(operand); });
    }
    Sizes made = 0;
    if (auto* construct = value.as<Construct>()) made |= size_bit(construct->fields.size());
    for_each_block(value,
                   [&](const BlockRef& inner) { made |= block(*inner, tail && value.is<If>()); });
    return made;
  }

  // The arguments of any other call. Kernels, and functions that write their results into tensors,
  // keep nothing.
  void given(const Call& call) {
    if (call.closure) own(call.closure);
    if (inputs_of(*module_, call) < call.args.size()) return;
    const vm::Opcode opcode = instruction_of(call);
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (!borrows_argument(opcode, i)) own(call.args[i]);
    }
  }

  void part(const Var* whole, const VarRef& var) {
    const bool is_plain = var->type.is<ScalarType>() || is_unit(var->type);
    if (is_plain || var->type.is<TypeVar>()) return;
    borrowed_.insert(var.get());
    follows(whole, var.get());
    follows(var.get(), whole);
  }

  Sizes matched(const Match& match, bool tail) {
    const Var* whole = candidate(match.value);
    Sizes made = 0;
    for (size_t i = 0; i < match.arms.size(); ++i) {
      const Pattern& pattern = *match.patterns[i];
      if (whole) {
        for (const VarRef& var : variables_of(pattern)) part(whole, var);
      }
      const Sizes here = block(*match.arms[i], tail);
      const bool may_reuse = pattern.kind == PatternKind::kConstructor && !pattern.fields.empty() &&
                             (here & size_bit(pattern.fields.size()));
      if (whole && may_reuse) owned_.push_back(whole);
      made |= here;
    }
    return made;
  }

  void called(const Call& call, bool tail) {
    const FunctionExpr& callee = *module_->functions.at(call.callee);
    const bool stays = tail && tail_calls_.may_lead_back(caller_, call.callee.view());
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Var* const given = candidate(call.args[i]);
      const Var* const param = candidate(callee.params[i]);
      if (!param) {
        own(call.args[i]);
        continue;
      }
      if (given) follows(param, given);
      if (!stays) continue;
      if (given) {
        follows(given, param);
      } else {
        owned_.push_back(param);
      }
    }
  }

  const Module& module_;
  const TailCallGraph tail_calls_;
  std::string_view caller_;
  // What isn't kept, as far as it is known: parameters, and parts of any type that has objects.
  std::unordered_set<const Var*> borrowed_;
  std::vector<const Var*> owned_;  // not yet removed from borrowed_
  std::unordered_map<const Var*, std::vector<const Var*>> owned_if_;
};

}  // namespace

Borrowing::Borrowing(const Module& module) : borrowed_(Analysis(module).run()) {}

}  // namespace tenon::codegen

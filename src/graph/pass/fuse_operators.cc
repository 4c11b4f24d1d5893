#include "graph/pass/fuse_operators.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/intrinsic.h"
#include "graph/ir/outline.h"
#include "graph/ir/rewrite.h"
#include "graph/op/lower.h"
#include "graph/op/pointwise.h"
#include "loop/symbol_set.h"
#include "object/reflect.h"

namespace tenon::graph {
namespace {

bool is_pointwise(OpKind kind) {
  return kind == OpKind::kElementwise || kind == OpKind::kBroadcast;
}

bool is_anchor(OpKind kind) {
  return kind == OpKind::kReduction || kind == OpKind::kNormalization ||
         kind == OpKind::kContraction;
}

bool is_single_element(const TypeRef& type) {
  const TensorType* t = known_tensor(type);
  return t && has_one_element(t->dims);
}

// Whether the result has more bytes per element than what it is computed from.
bool is_wider(const Call& call, const TypeRef& result) {
  const TensorType *from = known_tensor(call.args[0]), *to = known_tensor(result);
  return from && to && to->dtype.bytes() > from->dtype.bytes();
}

// Whether recomputing one element costs more than reading it back from memory.
bool is_expensive(const Operator& op, const Call& call) {
  return is_pointwise(op.kind) && is_costly(op, call);
}

struct Node {
  const Binding* binding;
  const Call* call;
  const Operator* op;
  int group = -1;
};

// The groups of one block. A member is the index of a binding of the block.
class Grouping {
 public:
  Grouping(const BlockRef& block, const std::unordered_map<const Var*, int64_t>& uses)
      : uses_(uses) {
    for (const auto& binding : block->bindings) {
      Node node{binding.get(), binding->value.as<Call>(), operator_of(binding->value)};
      // A view moves no data, so fusing it gains nothing.
      if (node.op && (!node.op->lower || node.op->view)) node.op = nullptr;
      if (node.op && binding->var->type.as<ScalarType>()) node.op = nullptr;
      index_[binding->var.get()] = static_cast<int>(nodes_.size());
      nodes_.push_back(node);
    }
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      for_each_operand(nodes_[i].binding->value, [&](const Operand& operand) {
        if (auto* var = operand.as<Var>()) {
          if (auto it = index_.find(var); it != index_.end()) consumers_[it->second].push_back(i);
        }
      });
    }
  }

  // Members of each group in order, the root last.
  std::vector<std::vector<int>> form(bool merge) {
    std::vector<std::vector<int>> groups;
    for (int root = static_cast<int>(nodes_.size()) - 1; root >= 0; --root) {
      if (!nodes_[root].op || nodes_[root].group >= 0) continue;
      const int group = static_cast<int>(groups.size());
      nodes_[root].group = group;
      std::vector<int> members = {root};
      if (merge) grow(group, root, &members);
      std::reverse(members.begin(), members.end());
      groups.push_back(std::move(members));
    }
    return groups;
  }

 private:
  static constexpr size_t kMaxMembers = 64;
  static constexpr size_t kMaxOperands = 384;  // of the group, counting shared ones several times
  // More make a function whose sizes, or whose values that don't fit into registers, are too many.
  static constexpr size_t kMaxMovements = 32, kMaxSymbols = 64;

  // Tries producers from last to first, so that all consumers of a producer are decided before it.
  void grow(int group, int root, std::vector<int>* members) {
    const OpKind root_kind = nodes_[root].op->kind;
    if (root_kind == OpKind::kOpaque || nodes_[root].binding->var->type.as<TupleType>()) return;
    bool anchored = is_anchor(root_kind);
    int epilogue_of = -1;                     // the contraction that members follow
    std::set<int, std::greater<>> producers;  // of members
    auto add_producers = [&](int member) {
      for (const Operand& operand : nodes_[member].call->args) {
        if (auto it = index_.find(operand.as<Var>()); it != index_.end())
          producers.insert(it->second);
      }
    };
    add_producers(root);
    size_t operands = nodes_[root].call->args.size(), movements = root_kind == OpKind::kMovement;
    SymbolSet symbols = symbols_of(*nodes_[root].call);  // of members' operands
    while (!producers.empty() && members->size() < kMaxMembers) {
      const int i = *producers.begin();
      producers.erase(producers.begin());
      Node& p = nodes_[i];
      if (!p.op || p.group >= 0 || !all_uses_in(group, i)) continue;
      if (operands + p.call->args.size() > kMaxOperands) continue;
      const OpKind kind = p.op->kind;
      if (kind == OpKind::kMovement && movements == kMaxMovements) continue;
      const SymbolSet own = symbols_of(*p.call);
      const auto added = std::ranges::count_if(
          own, [&](const std::string& name) { return !symbols.contains(name); });
      if (!own.empty() && symbols.size() + static_cast<size_t>(added) > kMaxSymbols) continue;
      if (kind == OpKind::kOpaque || !known_tensor(p.binding->var->type)) continue;
      if (is_anchor(kind)) {
        if (anchored || !only_pointwise_after(group, i, *members)) continue;
        anchored = true;
      } else if (!may_inline(i)) {
        continue;
      } else if (const int contraction = contraction_before(i);
                 contraction >= 0 && !is_wider(*p.call, p.binding->var->type)) {
        // An epilogue is cheapest where its contraction has each element in a register, so it
        // stays with a contraction that can't join.
        const bool other = epilogue_of >= 0 && epilogue_of != contraction;
        if (anchored || other || !only_pointwise_after(group, i, *members)) continue;
        epilogue_of = contraction;
      }
      p.group = group;
      members->push_back(i);
      operands += p.call->args.size();
      movements += kind == OpKind::kMovement;
      for (const std::string& name : own) symbols.add(name);
      add_producers(i);
    }
  }

  static SymbolSet symbols_of(const Call& call) {
    SymbolSet symbols;
    for (const Operand& arg : call.args) collect_symbols(type_of(arg), &symbols);
    return symbols;
  }

  // A contraction from whose result node i is computed element by element, by operators that
  // nothing else uses; -1 if there is none. `steps` bounds the search.
  int contraction_before(int i, size_t steps = kMaxMembers) const {
    if (nodes_[i].op->kind == OpKind::kContraction) return i;
    if (!is_pointwise(nodes_[i].op->kind) || steps == 0) return -1;
    for (const Operand& arg : nodes_[i].call->args) {
      auto it = index_.find(arg.as<Var>());
      if (it == index_.end()) continue;
      const Node& before = nodes_[it->second];
      const VarRef& var = before.binding->var;
      if (!before.op || before.group >= 0 || uses_.at(var.get()) != 1 ||
          !same_dims(var->type, nodes_[i].binding->var->type)) {
        continue;
      }
      if (const int found = contraction_before(it->second, steps - 1); found >= 0) return found;
    }
    return -1;
  }

  bool all_uses_in(int group, int i) const {
    auto uses = uses_.find(nodes_[i].binding->var.get());
    auto consumers = consumers_.find(i);
    if (uses == uses_.end() || consumers == consumers_.end()) return false;
    // Uses as the block's result or in a nested block can't be fused.
    if (static_cast<int64_t>(consumers->second.size()) != uses->second) return false;
    return std::all_of(consumers->second.begin(), consumers->second.end(),
                       [&](int c) { return nodes_[c].group == group; });
  }

  bool only_pointwise_after(int group, int i, const std::vector<int>& members) const {
    const TypeRef& type = nodes_[i].binding->var->type;
    // Members on other branches of the group don't depend on the anchor.
    const std::unordered_set<int> below = reached_from(i, group, members.front());
    return std::ranges::all_of(members, [&](int m) {
      const Node& node = nodes_[m];
      return !below.contains(m) ||
             (is_pointwise(node.op->kind) && same_dims(node.binding->var->type, type));
    });
  }

  // The members after i that use its value.
  std::unordered_set<int> reached_from(int i, int group, int root) const {
    std::unordered_set<int> reached;
    std::vector<int> open = {i};
    while (!open.empty()) {
      if (open.back() == root) {  // what uses it is outside
        open.pop_back();
        continue;
      }
      auto consumers = consumers_.find(open.back());
      open.pop_back();
      if (consumers == consumers_.end()) continue;
      for (int c : consumers->second) {
        if (nodes_[c].group == group && reached.insert(c).second) open.push_back(c);
      }
    }
    return reached;
  }

  bool may_inline(int i) const {
    const Node& p = nodes_[i];
    const TypeRef& type = p.binding->var->type;
    for (int c : consumers_.at(i)) {
      const Node& consumer = nodes_[c];
      // Contractions read each element many times, and their schedules need plain buffers. A matmul
      // dequantises a constant as it packs it.
      if (consumer.op->kind == OpKind::kContraction && !p.op->read_through &&
          !(is_op(*consumer.call, op::matmul) &&
            is_dequantised_constant(p.binding->value, definition_))) {
        return false;
      }
      if (is_expensive(*p.op, *p.call) && consumer.op->kind == OpKind::kMovement) return false;
      if (is_expensive(*p.op, *p.call) && consumer.op->kind == OpKind::kBroadcast &&
          !same_dims(consumer.binding->var->type, type) && !is_single_element(type)) {
        return false;
      }
    }
    return true;
  }

  const std::function<ExprRef(const Operand&)> definition_ = [this](const Operand& operand) {
    auto it = index_.find(operand.as<Var>());
    return it == index_.end() ? ExprRef() : nodes_[static_cast<size_t>(it->second)].binding->value;
  };
  const std::unordered_map<const Var*, int64_t>& uses_;
  std::vector<Node> nodes_;
  std::unordered_map<const Var*, int> index_;
  std::unordered_map<int, std::vector<int>> consumers_;
};

// Makes the primitive functions and replaces each group's root by a call of its function.
class Fuser : public Rewriter {
 public:
  explicit Fuser(bool merge) : merge_(merge) {}

  Module fuse(const Module& module) {
    Module rewritten = run(with_kernels_only(module));
    Map<String, FunctionRef> functions = rewritten->functions;
    for (const auto& [name, group] : made_) {
      auto fused = make<FunctionExpr>(*group);
      fused->name = name;
      fused->attrs.set(kFusedAttr, Any(true));
      functions.set(name, fused);
    }
    return with_functions(rewritten, std::move(functions));
  }

 protected:
  void enter(const FunctionRef& function) override {
    roots_.clear();
    inner_.clear();
    if (function->is_primitive()) return;
    const auto uses = count_uses(function);
    plan(function->body, uses);
  }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (auto it = roots_.find(var.get()); it != roots_.end()) return emit(it->second);
    if (inner_.contains(var.get())) return var;  // used only in its own group
    return keep(var, value);
  }

 private:
  // A program's primitive function that can't be one kernel, perhaps only after other passes,
  // becomes an ordinary function.
  static Module with_kernels_only(const Module& module) {
    Map<String, FunctionRef> functions = module->functions;
    for (const auto& [name, function] : module->functions) {
      if (!function->is_primitive() || !find_obstacle(*function)) continue;
      auto plain = make<FunctionExpr>(*function);
      plain->attrs.erase(kPrimitiveAttr);
      plain->attrs.erase(kFusedAttr);
      plain->attrs.set(kExportAttr, Any(false));
      functions.set(name, plain);
    }
    return with_functions(module, std::move(functions));
  }

  struct Group {
    std::vector<Ref<const Binding>> members;
  };

  void plan(const BlockRef& block, const std::unordered_map<const Var*, int64_t>& uses) {
    Grouping grouping(block, uses);
    for (const auto& indices : grouping.form(merge_)) {
      Group group;
      for (int i : indices) {
        group.members.push_back(block->bindings[i]);
        if (i != indices.back()) inner_.insert(block->bindings[i]->var.get());
      }
      roots_[block->bindings[indices.back()]->var.get()] = std::move(group);
    }
    for (const auto& binding : block->bindings) {
      for_each_block(binding->value, [&](const BlockRef& inner) { plan(inner, uses); });
    }
  }

  // Makes the group a function of its outside operands. Constants that may be literals stay inside.
  Operand emit(const Group& group) {
    std::vector<Operand> outside;
    Outline outline;
    Span span;
    for (const auto& member : group.members) span = Span::merge(span, member->span);
    outline.builder().at(span);
    std::unordered_set<const Object*> known;  // members, and parameters so far
    for (const auto& member : group.members) known.insert(member->var.get());
    for (const auto& member : group.members) {
      for (const Operand& arg : member->value.as<Call>()->args) {
        if (!arg || (arg.is<Constant>() && may_be_literal(type_of(arg)))) continue;
        if (!known.insert(arg.get()).second) continue;
        outline.param(arg, cat("p", outside.size()), type_of(arg));
        outside.push_back(mapped(arg));
      }
    }
    import_sizes(group, &outline, &outside);
    // Inference repeats the checks that the caller made, so the function is self-contained.
    Operand result;
    for (const auto& member : group.members) result = outline.copy_checked(*member);
    outline.builder().at(span);
    const String name =
        add_function(outline.finish("fused", result, attrs({{kPrimitiveAttr, Any(true)}})));
    const VarRef& root = group.members.back()->var;
    builder().at(span);
    return builder().bind_typed(make_call(CalleeKind::kGlobal, name.view(), outside), root->type,
                                root->name);
  }

  // The name of the function in the module; equal groups share one function.
  String add_function(const FunctionRef& group) {
    const std::string wanted = fused_name(*group);
    String name(wanted);
    for (int i = 1;; ++i) {
      const FunctionRef* made = made_.find(name);
      if (made && structural_equal(Any(*made), Any(group))) return name;
      if (!made && !module()->functions.contains(name)) break;
      name = String(cat(wanted, "_", i));
    }
    made_.set(name, group);
    return name;
  }

  // Symbols that appear only inside expressions (4*n) or in attributes are bound by an additional
  // parameter, which lowering removes again, because a kernel takes such sizes as integers.
  void import_sizes(const Group& group, Outline* outline, std::vector<Operand>* outside) {
    SymbolSet bound, used;
    for (const Operand& operand : *outside) {
      collect_binding_symbols(type_of(operand), &bound);
      collect_symbols(type_of(operand), &used);
    }
    for (const auto& member : group.members) {
      collect_symbols(member->var->type, &used);
      collect_symbols(member->value.as<Call>()->attrs, &used);
    }
    std::vector<Dim> sizes;
    for (const std::string& symbol : used) {
      if (!bound.contains(symbol)) sizes.push_back(Dim::symbol(symbol));
    }
    for (size_t done = 0; done < sizes.size(); done += kMaxCarriedValues) {
      const size_t count = std::min<size_t>(kMaxCarriedValues, sizes.size() - done);
      const std::vector<Dim> some(sizes.begin() + done, sizes.begin() + done + count);
      const auto type = with_values(tensor_type(i64, {Dim(some.size())}), some);
      outside->push_back(builder().bind_stated(values_call(type), "sizes"));
      outline->param("sizes", type);
    }
  }

  bool merge_;
  std::unordered_map<const Var*, Group> roots_;
  std::unordered_set<const Var*> inner_;
  Map<String, FunctionRef> made_;
};

}  // namespace

constexpr size_t kDigits = 6;  // of the hash in a name

std::string fused_name(const FunctionExpr& group) {
  constexpr size_t kMostNameBytes = 60;  // of "fused" and the operators' names
  std::string name = "fused";
  for (const auto& binding : group.body->bindings) {
    if (auto* call = binding->value.as<Call>()) name += cat("_", call->callee);
  }
  if (name.size() > kMostNameBytes) name.resize(kMostNameBytes);
  const uint64_t hash = structural_hash(Any(FunctionRef(&group)));
  char digits[kDigits + 2];
  std::snprintf(digits, sizeof digits, "_%0*x", int{kDigits},
                static_cast<unsigned>((hash ^ hash >> 32) & ((1 << 4 * kDigits) - 1)));
  return name + digits;
}

std::string fused_operators(std::string_view name) {
  const auto ends_in = [](std::string_view text, std::string_view characters) {
    return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
  };
  constexpr std::string_view kPrefix = "fused_";
  if (!name.starts_with(kPrefix)) return std::string(name);
  std::string_view operators = name.substr(kPrefix.size());
  // A number follows if another kernel has the name (free_name); of six digits, it is the hash.
  if (const size_t last = operators.rfind('_'); last != std::string_view::npos &&
                                                operators.size() - last - 1 != kDigits &&
                                                ends_in(operators.substr(last + 1), "0123456789")) {
    operators = operators.substr(0, last);
  }
  const size_t last = operators.rfind('_');
  if (last == std::string_view::npos || operators.size() - last - 1 != kDigits ||
      !ends_in(operators.substr(last + 1), "0123456789abcdef")) {
    return std::string(name);
  }
  return std::string(operators.substr(0, last));
}

Module fuse_operators(const Module& module, PassContext& cx) {
  return Fuser(/*merge=*/cx.level >= 2).fuse(module);
}

}  // namespace tenon::graph

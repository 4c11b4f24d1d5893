#include "graph/pass/fold_constants.h"

#include <span>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/infer_match_shape.h"
#include "graph/ir/outline.h"
#include "graph/ir/rewrite.h"
#include "graph/pass/fuse_operators.h"
#include "graph/pass/lower_to_kernels.h"
#include "graph/pass/remove_dead_code.h"
#include "support/poll.h"

namespace tenon::graph {
namespace {

std::optional<int64_t> constant_bytes(const TypeRef& type) {
  auto* tensor = type.as<TensorType>();
  if (!tensor || !tensor->dims_known) return std::nullopt;
  return bytes_of(*tensor).as_const();
}

// The bindings of one function that depend only on constants, and the variables among them that
// other bindings use.
struct Foldable {
  std::vector<Ref<const Binding>> bindings;
  std::vector<VarRef> results;
};

// The variables of dequantised numbers that one product, as its matrix on the right, or one look-up
// in the same block uses, and those of the packed numbers that these dequantise. What uses them
// reads them element by element, so that they can stay narrow.
class ReadInPlace {
 public:
  std::unordered_set<const Var*> find(const FunctionRef& function) {
    uses_ = count_uses(function);
    visit(function->body);
    return std::move(found_);
  }

 private:
  void visit(const BlockRef& block) {
    std::unordered_map<const Var*, const Call*> dequantised;  // in this block
    std::unordered_map<const Var*, const Call*> unpacked;
    for (const auto& binding : block->bindings) {
      for_each_block(binding->value, [this](const BlockRef& inner) { visit(inner); });
      if (const Call* call = as_op(binding->value, op::dequantize_linear)) {
        if (is_narrow(*call, *binding)) dequantised[binding->var.get()] = call;
      } else if (const Call* call = as_op(binding->value, op::unpack_bits)) {
        unpacked[binding->var.get()] = call;
      } else if (const Call* call = as_op(binding->value, op::matmul)) {
        const TensorType* matrix = known_tensor(call->args[1]);
        if (matrix && matrix->rank == 2) add(call->args[1].as<Var>(), dequantised, unpacked);
      } else if (const Call* call = as_op(binding->value, op::gather)) {
        add(call->args[0].as<Var>(), dequantised, unpacked);
      }
    }
  }

  // Whether enough is gained by not folding it.
  static bool is_narrow(const Call& dequantise, const Binding& binding) {
    constexpr int64_t kSmall = 1 << 12;
    const auto bytes = constant_bytes(binding.var->type);
    const TensorType *from = known_tensor(dequantise.args[0]),
                     *to = known_tensor(binding.var->type);
    return bytes && *bytes > kSmall && from && to && from->dtype.bytes() < to->dtype.bytes();
  }

  void add(const Var* var, const std::unordered_map<const Var*, const Call*>& dequantised,
           const std::unordered_map<const Var*, const Call*>& unpacked) {
    auto it = dequantised.find(var);
    if (it == dequantised.end() || uses_.at(var) != 1) return;
    found_.insert(var);
    const Var* packed = it->second->args[0].as<Var>();
    if (unpacked.contains(packed) && uses_.at(packed) == 1) found_.insert(packed);
  }

  std::unordered_map<const Var*, int64_t> uses_;
  std::unordered_set<const Var*> found_;
};

// How many bytes folding may still create.
struct Budget {
  int64_t stored;    // values that are stored in memory
  int64_t computed;  // these, and values that fuse into their uses
};

class Finder {
 public:
  // Subtracts the bytes of the bindings that it finds from the budget.
  Finder(Budget* budget, bool keeps_narrow) : budget_(budget), keeps_narrow_(keeps_narrow) {}

  Foldable find(const FunctionRef& function) {
    uses_ = count_uses(function);
    if (keeps_narrow_) in_place_ = ReadInPlace().find(function);
    visit(function->body);
    Foldable out;
    out.bindings = std::move(folded_);
    for (const auto& binding : out.bindings) {
      if (wanted_.contains(binding->var.get())) out.results.push_back(binding->var);
    }
    return out;
  }

 private:
  void visit(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      if (may_fold(*binding)) {
        const int64_t bytes = *constant_bytes(binding->var->type);
        budget_->stored += fused_bytes(*binding->value.as<Call>()) - bytes;
        budget_->computed -= bytes;
        members_.emplace(binding->var.get(), binding.get());
        folded_.push_back(binding);
        continue;
      }
      for_each_operand(binding->value, [this](const Operand& o) { want(o); });
      for_each_block(binding->value, [this](const BlockRef& inner) { visit(inner); });
    }
    want(block->result);
  }

  void want(const Operand& operand) {
    if (operand && members_.contains(operand.get())) wanted_.insert(operand.get());
  }

  bool may_fold(const Binding& binding) const {
    const Operator* op = operator_of(binding.value);
    if (!op || (!op->lower && !op->view) || in_place_.contains(binding.var.get())) return false;
    auto bytes = constant_bytes(binding.var->type);
    auto* call = binding.value.as<Call>();
    if (op->read_through && !is_op(*call, op::unpack_bits)) return false;
    for (const Operand& arg : call->args) {
      if (arg && !arg.is<Constant>() && !members_.contains(arg.get())) return false;
    }
    return bytes && *bytes <= budget_->computed && *bytes <= budget_->stored + fused_bytes(*call);
  }

  // The bytes of operands that are used only by this call and thus fuse into it.
  int64_t fused_bytes(const Call& call) const {
    int64_t all = 0;
    std::unordered_map<const Object*, int64_t> here;
    for (const Operand& arg : call.args) {
      auto member = members_.find(arg.get());
      // Counts it at its last occurrence in this call, if it has no other uses.
      if (member == members_.end() || ++here[arg.get()] != uses_.at(arg.as<Var>())) continue;
      const OpKind kind = operator_of(member->second->value)->kind;
      if (kind == OpKind::kElementwise || kind == OpKind::kBroadcast || kind == OpKind::kMovement) {
        all += *constant_bytes(member->second->var->type);
      }
    }
    return all;
  }

  Budget* budget_;
  const bool keeps_narrow_;
  std::unordered_set<const Var*> in_place_;
  std::unordered_map<const Var*, int64_t> uses_;
  std::unordered_map<const Object*, const Binding*> members_;
  std::unordered_set<const Object*> wanted_;
  std::vector<Ref<const Binding>> folded_;
};

FunctionRef as_function(const Foldable& part, std::span<const VarRef> wanted) {
  Outline outline;
  for (const auto& binding : part.bindings) outline.copy(*binding);
  std::vector<Operand> results;
  for (const VarRef& var : wanted) results.push_back(outline.mapped(var));
  return outline.finish("folded", outline.builder().tuple(results));
}

// Replaces the folded variables by their values; their bindings become dead code.
class Replacer : public Rewriter {
 public:
  explicit Replacer(std::unordered_map<const Object*, Operand> values)
      : values_(std::move(values)) {}

 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    auto it = values_.find(var.get());
    return it == values_.end() ? keep(var, value) : it->second;
  }

 private:
  std::unordered_map<const Object*, Operand> values_;
};

using Constants = std::unordered_map<const Object*, Operand>;

// Computes `wanted`. If that fails, it computes both halves separately, so that only the failing
// values are left out, until `failures_left` have failed: each attempt takes time for all of
// `part`.
void compute(const Foldable& part, std::span<const VarRef> wanted, PassContext& cx,
             int* failures_left, Constants* constants) {
  if (wanted.empty() || *failures_left == 0) return;
  const FunctionRef folded = as_function(part, wanted);
  Map<String, FunctionRef> functions;
  functions.set(folded->name, folded);
  const Module needed = remove_dead_code(make_module(functions), cx);
  const Module lowered = lower_to_kernels(fuse_operators(needed, cx), cx);
  std::vector<Any> values;
  try {
    values = cx.evaluator->run(lowered, *lowered->functions.find(folded->name), {});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) throw;
    poll();  // what is to stop all of compiling doesn't only leave this value out
    --*failures_left;
    if (wanted.size() == 1) return;
    const size_t half = wanted.size() / 2;
    compute(part, wanted.first(half), cx, failures_left, constants);
    compute(part, wanted.subspan(half), cx, failures_left, constants);
    return;
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    (*constants)[wanted[i].get()] =
        constant(values[i].as<Tensor>().as_read_only(), wanted[i]->name);
  }
}

// Forgets constants that a match in the block certainly refuses.
void leave_refused(const BlockRef& block, Constants* constants) {
  for (const auto& binding : block->bindings) {
    for_each_block(binding->value, [&](const BlockRef& inner) { leave_refused(inner, constants); });
    const auto* match = binding->value.as<MatchShape>();
    const auto found = match ? constants->find(match->value.get()) : constants->end();
    if (found != constants->end() && refuses(*match, found->second)) constants->erase(found);
  }
}

FunctionRef fold(const FunctionRef& function, PassContext& cx, Budget* budget) {
  const Foldable part = Finder(budget, /*keeps_narrow=*/cx.level >= 2).find(function);
  Constants constants;
  int failures_left = 64;  // enough to find some failing values among thousands
  compute(part, part.results, cx, &failures_left, &constants);
  leave_refused(function->body, &constants);
  return constants.empty() ? function : Replacer(std::move(constants)).run(function);
}

}  // namespace

Module fold_constants(const Module& module, PassContext& cx) {
  if (!cx.evaluator) return module;
  Map<String, FunctionRef> functions;
  constexpr int64_t kFusedShare = 16;  // bytes computed per byte stored
  Budget budget{cx.fold_limit,
                cx.fold_limit > INT64_MAX / kFusedShare ? INT64_MAX : cx.fold_limit * kFusedShare};
  for (const auto& [name, function] : module->functions) {
    functions.set(name, fold(function, cx, &budget));
  }
  return with_functions(module, std::move(functions));
}

}  // namespace tenon::graph

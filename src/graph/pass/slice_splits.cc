#include "graph/pass/slice_splits.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// Whether fusion reads the operands of `binding` element by element.
bool is_pointwise(const Binding& binding) {
  const Operator* op = operator_of(binding.value);
  return op && (op->kind == OpKind::kElementwise || op->kind == OpKind::kBroadcast) &&
         known_tensor(binding.var->type);
}

// The uses of the parts of splits in one function.
class Uses {
 public:
  explicit Uses(const FunctionRef& function) : all_(count_uses(function)) {
    collect(function->body);
  }

  // Whether only pointwise operators use the part.
  bool only_pointwise(const Var* part) const {
    return count(pointwise_, part) == count(all_, part);
  }

  // Whether the split's result is only taken apart, and at most one part has other uses.
  bool may_slice(const Var* split) const {
    const auto parts = parts_.find(split);
    if (parts == parts_.end()) return false;
    if (static_cast<int64_t>(parts->second.size()) != count(all_, split)) return false;
    return std::ranges::count_if(parts->second,
                                 [this](const Var* part) { return !only_pointwise(part); }) <= 1;
  }

 private:
  using Counts = std::unordered_map<const Var*, int64_t>;

  static int64_t count(const Counts& counts, const Var* var) {
    const auto found = counts.find(var);
    return found == counts.end() ? 0 : found->second;
  }

  void collect(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      if (auto* field = binding->value.as<Field>(); field && known_tensor(binding->var->type)) {
        if (auto* tuple = field->tuple.as<Var>()) parts_[tuple].push_back(binding->var.get());
      }
      if (is_pointwise(*binding)) {
        for (const Operand& arg : binding->value.as<Call>()->args) {
          if (auto* var = arg.as<Var>()) ++pointwise_[var];
        }
      }
      for_each_block(binding->value, [this](const BlockRef& inner) { collect(inner); });
    }
  }

  const Counts all_;
  Counts pointwise_;
  std::unordered_map<const Var*, std::vector<const Var*>> parts_;  // of a tuple
};

class Slicer : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override {
    uses_.emplace(function);
    splits_.clear();
    slices_.clear();
  }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (as_op(value, op::split) && uses_->may_slice(var.get())) {
      Operand split = keep(var, value);  // dead after this pass
      splits_.insert(split.get());
      return split;
    }
    if (auto* field = value.as<Field>(); field && splits_.contains(field->tuple.get())) {
      const ExprRef slice = slice_of(*field);
      // Checks that a symbolic part ends within the tensor; copies of the slice rely on it.
      Operand part = builder().bind_as(slice, var->type, var->name);
      if (uses_->only_pointwise(var.get())) slices_.emplace(part.get(), slice);
      return part;
    }
    auto* call = value.as<Call>();
    if (!call || !std::ranges::any_of(call->args, [this](const Operand& arg) {
          return slices_.contains(arg.get());
        })) {
      return keep(var, value);
    }
    return keep(var, make_call(call->kind, call->callee, with_own_slices(call->args), call->attrs));
  }

 private:
  ExprRef slice_of(const Field& field) {
    const ExprRef definition = builder().definition_of(field.tuple);
    const Call& split = *definition.as<Call>();
    const TensorType& x = *known_tensor(type_of(split.args[0]));
    const auto axis =
        static_cast<size_t>(normalised_axis(split.attrs.at("axis").as<int64_t>(), x.rank));
    const auto parts = split.attrs.at("sizes").as<Array<Dim>>();
    std::vector<Dim> starts(x.dims.size(), Dim(0)), sizes = x.dims.to_vector();
    for (int64_t i = 0; i < field.index; ++i) starts[axis] = starts[axis] + parts[i];
    sizes[axis] = parts[field.index];
    const std::vector<int64_t> steps(x.dims.size(), 1);
    const Attrs attributes = attrs(
        {{"starts", attr_dims(starts)}, {"sizes", attr_dims(sizes)}, {"steps", attr_ints(steps)}});
    return make_call(CalleeKind::kOperator, op::slice, {split.args[0]}, attributes);
  }

  // Fusion takes a value into the group of all its consumers only, so each gets its own.
  Array<Operand> with_own_slices(const Array<Operand>& args) {
    std::unordered_map<const Object*, Operand> own;
    std::vector<Operand> now;
    for (const Operand& arg : args) {
      const auto slice = slices_.find(arg.get());
      if (slice == slices_.end()) {
        now.push_back(arg);
        continue;
      }
      Operand& copy = own[arg.get()];
      if (!copy) copy = builder().bind_typed(slice->second, type_of(arg), arg.as<Var>()->name);
      now.push_back(copy);
    }
    return Array<Operand>(now);
  }

  std::optional<Uses> uses_;
  std::unordered_set<const Object*> splits_;  // of the new function
  std::unordered_map<const Object*, ExprRef> slices_;
};

}  // namespace

Module slice_splits(const Module& module, PassContext&) {
  return Slicer().run(module);
}

}  // namespace tenon::graph

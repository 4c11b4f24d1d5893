// The base of most passes: a walk that rebuilds functions binding by binding. The pass decides what
// replaces each binding.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <unordered_map>

#include "graph/ir/builder.h"
#include "graph/ir/operator_name.h"
#include "graph/ir/walk.h"

namespace tenon::graph {

// Subclasses override `rewrite`. Nested blocks are walked in order; only nesting is recursive.
class Rewriter {
 public:
  virtual ~Rewriter() = default;

  // Rewrites every function of `module`; keeps kernels and data types.
  Module run(const Module& module);
  FunctionRef run(const FunctionRef& function);

 protected:
  // Rewrites the binding `var = value`, where the operands of `value` are already replaced. Returns
  // the operand that replaces `var`. The default keeps the binding. Bindings of if, match and
  // function literals are kept, with rewritten blocks.
  virtual Operand rewrite(const VarRef& var, const ExprRef& value);
  // The same for a loop. The default keeps its variables and rewrites its blocks.
  virtual Operand rewrite_loop(const VarRef& var, const Loop& loop);
  // The condition of an if, already replaced.
  virtual Operand condition(const Operand& now) { return now; }
  // The same for a function literal, whose body is already rewritten.
  virtual Operand rewrite_literal(const VarRef& var, const FunctionRef& literal);
  // Whether to drop the binding and its blocks; no remaining binding may use its variable.
  virtual bool drops(const Binding& binding) const;
  // Called before a function's bindings are walked.
  virtual void enter(const FunctionRef& function);
  // Called before a binding, and the blocks in it, are rewritten.
  virtual void before(const Binding&) {}
  // Called around each block, including that of the function.
  virtual void open_block() {}
  virtual void close_block() {}

  Operand keep(const VarRef& var, const ExprRef& value);
  // The operand that replaces an old one.
  Operand mapped(const Operand& old) const;
  std::vector<Operand> mapped(const Array<Operand>& old) const;
  void map(const VarRef& old, const Operand& now);

  // Walks `block` into the builder's current block and returns the mapped result.
  Operand inline_block(const BlockRef& block);

  Builder& builder() { return *builder_; }
  const Module& module() const { return module_; }
  const Variances& variances() const { return signatures_.variances(); }

 private:
  ExprRef with_mapped_operands(const ExprRef& value);
  Operand walk(const Ref<const Binding>& binding);
  Operand walk_match(const Binding& binding, const Match& match);
  Operand walk_literal(const Binding& binding, const FunctionExpr& literal);
  PatternRef walk_pattern(const Pattern& pattern);
  VarRef walk_var(const VarRef& var);

  Module module_;
  Signatures signatures_;  // of the module
  Builder* builder_ = nullptr;
  std::unordered_map<const Var*, Operand> map_;
};

// `wanted`, with a number appended if that name is taken.
template <std::predicate<const std::string&> IsTaken>
std::string free_name(std::string_view wanted, const IsTaken& is_taken) {
  std::string name(wanted);
  for (int64_t i = 1; is_taken(name); ++i) name = cat(wanted, "_", i);
  return name;
}
template <class Value>
std::string free_name(std::string_view wanted, const Map<String, Value>& taken) {
  return free_name(wanted, [&](const std::string& name) { return taken.contains(String(name)); });
}

// `module` with other functions.
Module with_functions(const Module& module, Map<String, FunctionRef> functions);

// Whether tensors of these sizes have one element, whatever their symbols are.
bool has_one_element(const Array<Dim>& dims);

// How often each variable is used in a function, including nested blocks.
std::unordered_map<const Var*, int64_t> count_uses(const FunctionRef& function);

// The operator of a call, or null for other calls and values.
const Operator* operator_of(const Call& call);
const Operator* operator_of(const ExprRef& value);
bool is_op(const Call& call, OperatorName name);
// `value` as a call of the operator, or null.
const Call* as_op(const ExprRef& value, OperatorName name);
// The call of the operator that the builder bound `operand` to, or null.
const Call* call_of(const Builder& b, const Operand& operand, OperatorName name);
// Whether `value` dequantises a constant, whose numbers may be packed in bytes: a product that
// reads it leaves it as it is stored. `definition_of` finds what variables are bound to, or null.
bool is_dequantised_constant(const ExprRef& value,
                             const std::function<ExprRef(const Operand&)>& definition_of);
// Whether a call of an operator with LayoutRule::kImage has its channels last.
bool is_channels_last(const Call& call);
// An axis of a tensor of this rank, which negative numbers count from the end.
inline int64_t normalised_axis(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}
// The permutation of a call of `transpose`, without negative axes.
std::vector<int64_t> permutation_of(const Call& transpose);
// `x` with another shape, of as many elements.
Operand reshaped(Builder& b, const Operand& x, const std::vector<Dim>& shape);
// The type of an operand that is a tensor of this dtype and of known rank, or null.
const TensorType* known_tensor(const Operand& operand, DataType dtype);
// The tensor of a constant; null for other operands and constants.
Tensor constant_tensor(const Operand& operand);
// A constant tensor of this rank with one element.
Operand number_constant(DataType dtype, double value, size_t rank = 0);
// Whether `operand` is a constant tensor of which every byte is this one.
bool is_filled_with(const Operand& operand, uint8_t byte);
// The element of a constant tensor of floats, i32 or i64 with one element, of any rank.
std::optional<double> single_number(const Operand& operand);

}  // namespace tenon::graph

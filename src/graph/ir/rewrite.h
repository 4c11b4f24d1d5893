// The walk that most passes are made of: a function is rebuilt binding by binding, and a pass says
// what to put in the place of each.
#pragma once

#include <optional>
#include <unordered_map>

#include "graph/ir/builder.h"
#include "graph/ir/walk.h"

namespace tenon::graph {

// Subclasses override `rewrite`. Nested blocks are walked in order; recursion is over nesting only.
class Rewriter {
 public:
  virtual ~Rewriter() = default;

  // Every function of `module` rewritten; kernels and data types are kept.
  Module run(const Module& module);
  FunctionRef run(const FunctionRef& function);

 protected:
  // What the binding `var = value` becomes; `value`'s operands are already the new ones. Returns
  // the operand that stands for `var` from here on. The default keeps it.
  virtual Operand rewrite(const VarRef& var, const ExprRef& value);
  // Whether the binding goes, blocks and all; nothing that stays may use its variable.
  virtual bool drops(const Binding& binding) const;
  // Before a function's bindings are walked.
  virtual void enter(const FunctionRef& function);
  // Around each block, the function's own too.
  virtual void open_block() {}
  virtual void close_block() {}

  Operand keep(const VarRef& var, const ExprRef& value);
  // The new operand for an old one.
  Operand mapped(const Operand& old) const;
  std::vector<Operand> mapped(const Array<Operand>& old) const;
  void map(const VarRef& old, const Operand& now);

  // Walks `block` into the builder's current block and returns the mapped result.
  Operand inline_block(const BlockRef& block);

  Builder& builder() { return *builder_; }
  const Module& module() const { return module_; }

 private:
  ExprRef with_mapped_operands(const ExprRef& value);
  Operand walk(const Ref<const Binding>& binding);
  Operand walk_match(const Binding& binding, const Match& match);
  Operand walk_literal(const Binding& binding, const FunctionExpr& literal);
  VarRef walk_var(const VarRef& var);

  Module module_;
  Builder* builder_ = nullptr;
  std::unordered_map<const Var*, Operand> map_;
};

// Types of the module's functions, for builders.
GlobalTypes global_types(const Module& module);

// `wanted`, or with a number behind it if `taken` has that name.
template <class Value>
std::string free_name(std::string_view wanted, const Map<String, Value>& taken) {
  std::string name(wanted);
  for (int64_t i = 1; taken.contains(String(name)); ++i) name = cat(wanted, "_", i);
  return name;
}

// `module` with its functions replaced.
Module with_functions(const Module& module, Map<String, FunctionRef> functions);

// How often each variable is used in a function, nested blocks included.
std::unordered_map<const Var*, int64_t> count_uses(const FunctionRef& function);

// The operator of a call, or null for a call of anything else and for what is not a call.
const Operator* operator_of(const Call& call);
const Operator* operator_of(const ExprRef& value);
// `value` as a call of the operator `name`, or null.
const Call* as_op(const ExprRef& value, std::string_view name);
// The axes of a call of `transpose`, none negative.
std::vector<int64_t> permutation_of(const Call& transpose);
// The one element of a constant tensor of floats or of i32 or i64, whatever its rank.
std::optional<double> single_number(const Operand& operand);

}  // namespace tenon::graph

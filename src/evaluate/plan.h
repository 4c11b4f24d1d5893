// What the evaluator finds out about a program before it runs a part of it: slots for the variables
// of a function when it is first called; for a block when it first begins, a kernel for each of its
// calls that takes one, made together. What is never reached is never prepared. Operators that are
// defined by others are made of them.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "evaluate/kernel_cache.h"
#include "graph/ir/module.h"
#include "graph/ir/op.h"

namespace tenon::graph {

// Where a function's variables lie in its activations.
using Slots = std::unordered_map<const Var*, uint32_t>;

class Plan {
 public:
  Plan(const Module& module, KernelCache* cache) : module_(module), cache_(*cache) {}

  const Slots& slots_of(const FunctionExpr& function);
  // Before any binding of the block is evaluated; blocks within it have their own turn. The
  // function that holds it has its slots.
  void prepare(const Block& block);

  // Null for a binding that is no call of a kernel, or of an operator that has one.
  const PreparedKernel* kernel_of(const Binding& binding) const;
  // The operators that a binding's operator is made of, as a function of its operands. It runs in
  // the caller's activation, which has slots for it and knows the sizes that its types name. Null
  // for all other bindings.
  const FunctionExpr* expansion_of(const Binding& binding) const;

 private:
  void add_slots(const Block& block, Slots* slots);
  void add_slots(const FunctionExpr& function, Slots* slots);

  const Module& module_;
  KernelCache& cache_;
  std::unordered_map<const FunctionExpr*, Slots> slots_;
  std::unordered_set<const Block*> prepared_;
  std::unordered_map<const Binding*, PreparedKernelRef> kernels_;
  std::unordered_map<const Binding*, FunctionRef> expansions_;
};

}  // namespace tenon::graph

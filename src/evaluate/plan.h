// What the evaluator finds out about a function, and all that it calls, before it runs any of it: a
// slot for each variable, a compiled kernel for each call that takes one, and what operators that
// are defined by others are made of.
#pragma once

#include <unordered_map>

#include "evaluate/kernel_cache.h"
#include "graph/ir/module.h"
#include "graph/ir/op.h"

namespace tenon::graph {

// Where a function's variables lie in its activations.
using Slots = std::unordered_map<const Var*, uint32_t>;

class Plan {
 public:
  // Compiles what `cache` does not have, all of it at once.
  Plan(const Module& module, const FunctionRef& function, KernelCache* cache);

  const Slots& slots_of(const FunctionExpr& function) const { return slots_.at(&function); }
  // Null for a binding that is no call of a kernel, or of an operator that has one.
  const CompiledKernel* kernel_of(const Binding& binding) const;
  // The operators that a binding's operator is made of, as a function of its operands. It runs in
  // the caller's activation, which has slots for it and knows the sizes that its types name. Null
  // for all other bindings.
  const FunctionExpr* expansion_of(const Binding& binding) const;

 private:
  class Maker;

  std::unordered_map<const FunctionExpr*, Slots> slots_;
  std::unordered_map<const Binding*, CompiledKernelRef> kernels_;
  std::unordered_map<const Binding*, FunctionRef> expansions_;
};

}  // namespace tenon::graph

// What the evaluator computes about a program before it runs a part of it: slots for a function's
// variables when it is first called, and the kernels of a block's calls, compiled together, when
// the block first begins. Code that is never reached is never prepared. Composite operators are
// expanded.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "evaluate/kernel_cache.h"
#include "evaluate/last_uses.h"
#include "graph/ir/free_names.h"
#include "graph/ir/infer.h"
#include "graph/ir/module.h"
#include "graph/ir/op.h"
#include "graph/ir/tail_calls.h"

namespace tenon::graph {

// The index of each variable of a function in its activations.
using Slots = std::unordered_map<const Var*, uint32_t>;

class Plan {
 public:
  Plan(Module module, KernelCache* cache)
      : module_(std::move(module)),
        signatures_(Signatures::of(module_)),
        cache_(*cache),
        tail_calls_(module_, signatures_) {}

  const Module& module() const { return module_; }
  const Signatures& signatures() const { return signatures_; }

  const Slots& slots_of(const FunctionExpr& function);
  // Call it before evaluating the block's bindings and after slots_of() for its function. Nested
  // blocks are prepared separately.
  void prepare(const Block& block);

  // Null unless the binding calls a kernel or an operator that has one.
  const PreparedKernel* kernel_of(const Binding& binding) const;
  // The expansion of a composite operator as a function of its operands, or null. It runs in the
  // caller's activation, which has slots for its variables and knows the sizes in its types.
  const FunctionExpr* expansion_of(const Binding& binding) const;
  // Of the functions whose slots were asked for.
  const LastUses& last_uses() const { return last_uses_; }
  const TailCalls& tail_calls() const { return tail_calls_; }
  // The function of the module that the call names.
  const FunctionExpr& callee_of(const Call& call);
  // What a closure of the literal captures; its activations have slots for the variables.
  const FreeNames& captures_of(const FunctionExpr& literal);

 private:
  void add_slots(const Block& block, Slots* slots);
  void add_slots(const FunctionExpr& function, Slots* slots);

  Module module_;
  Signatures signatures_;
  KernelCache& cache_;
  TailCalls tail_calls_;
  std::unordered_map<const FunctionExpr*, Slots> slots_;
  LastUses last_uses_;
  std::unordered_map<const FunctionExpr*, FreeNames> captures_;
  std::unordered_set<const Block*> prepared_;
  std::unordered_map<const Call*, const FunctionExpr*> callees_;
  std::unordered_map<const Binding*, PreparedKernelRef> kernels_;
  std::unordered_map<const Binding*, FunctionRef> expansions_;
};

}  // namespace tenon::graph

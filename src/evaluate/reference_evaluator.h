// The reference evaluator: runs graph IR by walking it, each operator by its own unfused lowering.
// It is what `--mode interpret` runs, what folding computes with, and what passes are tested
// against. Kernels are prepared block by block, when a block first begins: what a run does not
// reach is never compiled.
//
// Values are Anys: tensors, integers, floats, booleans, Shapes, and Arrays for tuples. Sizes are
// looked up where types name them. Results are fresh tensors or parts of the arguments. Calls and
// nested blocks lie on a stack of its own, so that depth costs memory and nothing else.
#pragma once

#include <functional>
#include <limits>

#include "evaluate/kernel_cache.h"
#include "graph/ir/interfaces.h"

namespace tenon::graph {

class ReferenceEvaluator : public Evaluator {
 public:
  // Called with each value that an operator or kernel computes, for `--save-values`.
  using Observer = std::function<void(const Binding& binding, const Any& value)>;

  // By schedules and compiled, unless another mode is asked for: passes and code generation are
  // tested against kWalked, which shares neither with them.
  explicit ReferenceEvaluator(codegen::Target target, KernelMode mode = KernelMode::kScheduled)
      : cache_(std::move(target), mode) {}

  std::vector<Any> run(const Module& module, const FunctionRef& function,
                       const std::vector<Any>& args) override;

  // Activations of functions at once, as the machine counts its frames, and what they and the
  // blocks that have begun take; beyond either run throws Error (Runtime).
  size_t max_depth = 1 << 20;
  size_t max_stack_bytes = size_t{1} << 30;
  // What kernels may still store, in all runs together, by an estimate that is the same on every
  // machine (loop/work.h). A kernel that would store more isn't run: an Error (Runtime).
  double stores_left = std::numeric_limits<double>::infinity();
  Observer observer;

  const KernelCache& kernels() const { return cache_; }

 private:
  KernelCache cache_;
};

}  // namespace tenon::graph

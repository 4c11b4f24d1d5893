// The reference evaluator runs graph IR by walking it, each operator by its own unfused lowering.
// `--mode interpret` and constant folding use it, and passes are tested against it. Kernels are
// prepared block by block, when a block first begins: code that a run doesn't reach isn't compiled.
//
// Values are Anys: tensors, integers, floats, booleans, Shapes, and Arrays for tuples. Results are
// fresh tensors or parts of the arguments. Calls and nested blocks are kept on a heap-allocated
// stack, so that deep recursion costs only memory.
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

  // Passes and code generation are tested against kWalked, which uses neither.
  explicit ReferenceEvaluator(codegen::Target target, KernelMode mode = KernelMode::kScheduled)
      : cache_(std::move(target), mode) {}

  std::vector<Any> run(const Module& module, const FunctionRef& function,
                       const std::vector<Any>& args) override;

  // Limits on the number of nested activations, counted like the machine's frames, and on the bytes
  // of activations and active blocks. `run` throws Runtime when one is exceeded.
  static constexpr int64_t kMaxDepth = 1 << 20;
  size_t max_depth = kMaxDepth;
  size_t max_stack_bytes = size_t{1} << 30;
  // The work that kernels may still do, over all runs, by an estimate that is the same on every
  // machine (loop/work.h). `run` throws Runtime instead of running a kernel that exceeds it.
  double work_left = std::numeric_limits<double>::infinity();
  Observer observer;

  const KernelCache& kernels() const { return cache_; }

 private:
  KernelCache cache_;
};

}  // namespace tenon::graph

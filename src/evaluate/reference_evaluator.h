// The reference evaluator runs graph IR by walking it, each operator by its own unfused lowering.
// `--mode interpret` and constant folding use it, and passes are tested against it. Kernels are
// prepared block by block, when a block first begins: code that a run doesn't reach isn't compiled.
//
// Values are Anys: tensors, integers, floats, booleans, Shapes, Arrays for tuples, cells, and
// functions. Results are fresh tensors or parts of the arguments. Calls and nested blocks are kept
// on a heap-allocated stack, so that deep recursion costs only memory, and a tail call takes the
// place of its caller.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <mutex>

#include "evaluate/kernel_cache.h"
#include "graph/ir/interfaces.h"

namespace tenon::graph {

// What an evaluator's runs share. Closures keep it: they can be called when the evaluator is gone.
struct EvaluatorState {
  // Called with each value that an operator or kernel computes, for `--save-values`.
  using Observer = std::function<void(const Binding& binding, const Any& value)>;

  EvaluatorState(codegen::Target target, KernelMode mode) : cache(std::move(target), mode) {}

  KernelCache cache;
  // Limits on the number of nested activations, counted like the machine's frames, and on the bytes
  // of activations and active blocks of one run. A run throws Runtime when one is exceeded.
  static constexpr int64_t kMaxDepth = 1 << 20;
  size_t max_depth = kMaxDepth;
  static constexpr size_t kMaxStackBytes = size_t{1} << 30;
  size_t max_stack_bytes = kMaxStackBytes;
  // The work that kernels may still do, over all runs, by an estimate that is the same on every
  // machine (loop/work.h). A run throws Runtime instead of running a kernel that exceeds it.
  double work_left = std::numeric_limits<double>::infinity();
  Observer observer;
  std::recursive_mutex running;  // held by a run
};

class ReferenceEvaluator : public Evaluator {
 public:
  // Passes and code generation are tested against kWalked, which uses neither.
  explicit ReferenceEvaluator(codegen::Target target, KernelMode mode = KernelMode::kScheduled)
      : state_(std::make_shared<EvaluatorState>(std::move(target), mode)) {}

  std::vector<Any> run(const Module& module, const FunctionRef& function,
                       const std::vector<Any>& args) override;

  // Not while a run of this evaluator, or of a closure that one returned, is going on.
  EvaluatorState& state() { return *state_; }
  const KernelCache& kernels() const { return state_->cache; }

 private:
  std::shared_ptr<EvaluatorState> state_;
};

}  // namespace tenon::graph

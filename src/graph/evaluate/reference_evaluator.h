// The reference evaluator: runs graph IR by walking it, each operator by its own unfused lowering.
// It is what `--mode interpret` runs, what folding computes with, and what passes are tested
// against.
//
// Values are Anys: tensors, integers, floats, booleans, Shapes, and Arrays for tuples. Sizes are
// looked up where types name them. Results are fresh tensors or parts of the arguments.
#pragma once

#include <functional>
#include <string>

#include "graph/evaluate/kernel_cache.h"
#include "graph/ir/interfaces.h"

namespace tenon::graph {

class ReferenceEvaluator : public Evaluator {
 public:
  // Called with each value that an operator or kernel computes, for `--save-values`.
  using Observer = std::function<void(const Binding& binding, const Any& value)>;

  explicit ReferenceEvaluator(codegen::Target target) : cache_(std::move(target)) {}

  std::vector<Any> run(const Module& module, const FunctionRef& function,
                       const std::vector<Any>& args) override;

  // The largest depth of calls of globals; beyond it run throws Error (Runtime).
  int max_depth = 2000;
  Observer observer;

 private:
  friend class Frame;
  KernelCache cache_;
};

}  // namespace tenon::graph

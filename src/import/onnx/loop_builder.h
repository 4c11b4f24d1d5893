// Loops whose variables may change shape and which stack the values that each iteration yields.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

struct LoopStep {
  Operand go_on;    // whether to continue; null: yes
  Operands states;  // one per variable
  Operands yields;  // tensors, stacked along a new first axis over the iterations
};

struct LoopSpec {
  Operand limit;             // the number of iterations, i64[]; null: unlimited
  std::optional<Dim> count;  // `limit` as an expression, if known
  Operand go_on;             // whether to run the first iteration, bool[]; null: yes
  Operands init;
  // What the model says about the values that each iteration yields: their sizes count where there
  // is no iteration to take them from.
  std::vector<ValueType> yields;
  // Builds one iteration. `index` is i64[]. Returns nullopt if a node in it can't be imported.
  // Called several times: to find the types, then to build.
  std::function<std::optional<LoopStep>(const Operand& index, const Operands& states)> step;
};

struct LoopResult {
  Operands states, yields;
};

// Short loops of constant length are unrolled. A variable may be a sequence or an optional value,
// and begin as an absent value; it may change its rank where the operators in the body don't need
// to know it, and in iterations that are certain to run.
LoopResult build_loop(NodeContext& cx, const LoopSpec& spec);

}  // namespace tenon::onnx

// Loops whose variables may change their shape, and which collect what each iteration yields.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

struct LoopStep {
  Operand go_on;    // whether another iteration follows; null: yes
  Operands states;  // as many as there are variables
  Operands yields;  // stacked along a new first axis over the iterations
};

struct LoopSpec {
  Operand limit;             // the number of iterations, i64[]; null: without end
  std::optional<Dim> count;  // the same, where it is known as an expression
  Operand go_on;             // whether to begin at all, bool[]; null: yes
  Operands init;
  size_t yields = 0;
  // One iteration. `index` is i64[]. Nothing where a node in it cannot be imported. Called several
  // times: to find the types, then to build.
  std::function<std::optional<LoopStep>(const Operand& index, const Operands& states)> step;
};

struct LoopResult {
  Operands states, yields;
};

// Short loops of constant length are unrolled.
LoopResult build_loop(NodeContext& cx, const LoopSpec& spec);

}  // namespace tenon::onnx

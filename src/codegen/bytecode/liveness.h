// Liveness: the binding of a block after which each of the block's own variables is dead.
//
// A variable belongs to the block that binds it (a function's parameters to its body). A use inside
// a nested block counts as a use by the binding that holds that block: whether the branch runs, or
// how often the loop does, is not asked.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/ir/module.h"

namespace tenon::codegen {

struct BlockLiveness {
  // dies[i]: variables whose last use is binding i; the block's result is used after all of them.
  std::vector<std::vector<const graph::Var*>> dies;
  // Bound but never used: dead right after their binding.
  std::vector<bool> unused;
};

// `bindings` with the operands that are used after all of them. `extra` are variables that belong
// to the block beside those it binds: a function's parameters.
BlockLiveness analyse_liveness(const Array<Ref<const graph::Binding>>& bindings,
                               const std::vector<graph::Operand>& results,
                               const std::vector<const graph::Var*>& extra);

// What the blocks inside of `value` use, at any depth.
std::unordered_set<const graph::Var*> variables_used_inside(const graph::ExprRef& value);

}  // namespace tenon::codegen

// How a function's variables are used: whether at all, and for tuples, whether as a whole.
#pragma once

#include <unordered_set>

#include "graph/ir/module.h"

namespace tenon::codegen {

struct VariableUses {
  std::unordered_set<const graph::Var*> used;
  // Used in other ways than taking a field, or matching patterns of the fields. A tuple that an
  // `if` yields is used as the `if`'s value is.
  std::unordered_set<const graph::Var*> whole;
};

VariableUses variable_uses(const graph::FunctionExpr& function);

}  // namespace tenon::codegen

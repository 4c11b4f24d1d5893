// What a function literal uses of the blocks around it.
#pragma once

#include <vector>

#include "graph/ir/expr.h"

namespace tenon::graph {

struct FreeNames {
  std::vector<VarRef> variables;  // in the order of their first use
  // All symbols in the literal's types, sizes and attributes, in the order of the text. Those that
  // are in scope where the literal stands are free; the others are bound within it.
  SymbolSet symbols;
};
FreeNames free_names(const FunctionExpr& literal);

}  // namespace tenon::graph

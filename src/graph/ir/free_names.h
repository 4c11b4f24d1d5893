// What a function literal, or another block, uses of the blocks around it.
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
// Of a block that knows the given variables.
std::vector<VarRef> free_variables(const Block& block, const Array<VarRef>& known);

}  // namespace tenon::graph

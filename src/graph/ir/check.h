// The checker: whether a module keeps every rule of graph IR.
#pragma once

#include "graph/ir/module.h"

namespace tenon::graph {

// Throws Error with the binding's span: A-normal form, variables bound before use and once, symbols
// bound before use, operators and their attributes known, types as the rules infer them, calls fit
// their callee, match arms cover their type, nesting within kMaxNesting.
void check_module(const Module& module);

}  // namespace tenon::graph

// The checker verifies that a module follows all rules of graph IR.
#pragma once

#include "graph/ir/module.h"

namespace tenon::graph {

// Throws an Error with the binding's span unless: the module is in A-normal form, variables are
// bound once and before use, symbols are bound before use, operators and their attributes exist,
// types are those that the rules infer, calls match their callee, match arms cover their type, and
// nesting does not exceed kMaxNesting.
void check_module(const Module& module);

}  // namespace tenon::graph

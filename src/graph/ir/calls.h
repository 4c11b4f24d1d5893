// Which functions of a module refer to which.
#pragma once

#include <set>

#include "graph/ir/module.h"
#include "graph/ir/walk.h"

namespace tenon::graph {

// Calls `f` with each call of a function of the module, and each closure of one, in a block and the
// blocks in it: f(name, call), where the call is null for a closure.
template <class F>
void for_each_callee(const Block& block, const F& f) {
  for (const auto& binding : block.bindings) {
    const ExprRef& value = binding->value;
    const auto* call = value.as<Call>();
    if (call && call->kind == CalleeKind::kGlobal) f(call->callee, call);
    if (const auto* closure = value.as<Closure>()) f(closure->function, nullptr);
    for_each_block(value, [&](const BlockRef& inner) { for_each_callee(*inner, f); });
  }
}

// The functions that a function calls or makes a closure of: only these may be part of a recursion.
std::set<String> referred_functions(const Map<String, FunctionRef>& functions);

// The functions of `all` that `kept`, or a function that it leads to, calls or has as a value.
Map<String, FunctionRef> reachable(const Map<String, FunctionRef>& kept,
                                   const Map<String, FunctionRef>& all);

// The functions that lead back to themselves by calls.
std::set<String> recursive_functions(const Map<String, FunctionRef>& functions);

}  // namespace tenon::graph

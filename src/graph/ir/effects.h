// What evaluating a binding does beside giving its value (object/effect.h).
#pragma once

#include "graph/ir/expr.h"
#include "object/effect.h"

namespace tenon::graph {

// The strongest effect of the binding's right-hand side and of the blocks that run with it. A
// function literal only makes a closure: calling one, or a global function, may do anything.
// Checks, which may end the call, change no state. Results of memory intrinsics are Pure.
Effect effect_of(const Binding& binding);
// Of a call whose value has this type.
Effect effect_of(const Call& call, const TypeRef& type);

}  // namespace tenon::graph

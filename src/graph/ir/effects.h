// Side effects of evaluating a binding (object/effect.h).
#pragma once

#include "graph/ir/expr.h"
#include "object/effect.h"

namespace tenon::graph {

// The strongest effect of the binding's right-hand side and of its nested blocks. A function
// literal only creates a closure; calling a closure or a global function may have any effect.
// Checks may end the call but change no state. Results of memory intrinsics are Pure.
Effect effect_of(const Binding& binding);
// The effect of a call whose value has this type.
Effect effect_of(const Call& call, const TypeRef& type);

// Whether the binding must stay even if its value is unused. A check guards later bindings, a
// match_shape binds symbols, and a loop may not terminate.
bool must_stay(const Binding& binding);

}  // namespace tenon::graph

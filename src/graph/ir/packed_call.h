// What the compiler knows of a packed call. The form of a library function stands in
// library/signatures; of any other function, a host's own, the call itself says what it promises:
//
//   effect="pure"|"reads"|"ordered"   ordered when left out (object/effect.h)
//   destinations=1                    it writes its one result into a tensor behind the operands
//   no_retain=true                    it keeps none of its arguments after it returns
#pragma once

#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "library/signatures/signature.h"

namespace tenon::graph {

inline constexpr char kEffectAttr[] = "effect";
inline constexpr char kDestinationsAttr[] = "destinations";
inline constexpr char kNoRetainAttr[] = "no_retain";

// The form of the library function that a packed call names; null for a host's own function and for
// calls of other kinds.
const library::Signature* signature_of(const Call& call);

// The functions below take packed calls that are no memory intrinsic.

// The effect of the function that is called, as its signature or the call states it.
Effect effect_of_function(const Call& call);
// The effect of the call. A call whose value is the unit is made for what it does, so it is Ordered
// whatever it promises.
Effect effect_of_packed(const Call& call);
// It keeps an argument, or shares an argument's memory with its result.
bool keeps_arguments(const Call& call);
// It gives its result as a value so far, and will write it into a tensor behind the operands.
bool awaits_destination(const Call& call);
// The attributes that are passed to the function, in the order in which it takes them.
std::vector<std::pair<String, Any>> passed_attributes(const Call& call);

// The call of the packed function that computes the operator (Operator::packed): optional operands
// that were left out become absent ones.
Ref<const Call> as_packed_call(const Operator& op, const Call& call, const TypeRef& type);

// Throws Error (Usage) unless the call has the form that its signature or intrinsic gives, names no
// unknown memory intrinsic, promises what can be promised, and states no elements of its result,
// which nobody would check.
void check_packed_call(const Call& call);

}  // namespace tenon::graph

// Properties of packed calls. Library functions have a row in library/signatures. For other
// functions, those of the host, attributes of the call state the properties:
//
//   effect="pure"|"reads"|"ordered"   ordered if omitted (object/effect.h)
//   destinations=1                    it writes its one result into a tensor after the operands
//   no_retain=true                    it retains none of its arguments after it returns
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/module.h"
#include "graph/ir/op.h"
#include "library/signatures/signature.h"

namespace tenon::graph {

inline constexpr char kEffectAttr[] = "effect";
inline constexpr char kDestinationsAttr[] = "destinations";
inline constexpr char kNoRetainAttr[] = "no_retain";

// The signature of the library function that a packed call names; null for functions of the host
// and for other calls.
const library::Signature* signature_of(const Call& call);

// `value` as a call of the packed function, or null.
const Call* as_packed(const ExprRef& value, std::string_view function);

// How many operands any call only reads. It writes the others, which are its destinations.
size_t inputs_of(const ModuleNode& module, const Call& call);

// The functions below take packed calls that are not memory intrinsics.

// The effect of the function that is called, as stated by its signature or the call.
Effect effect_of_function(const Call& call);
// The effect of the call. A call that returns the unit is made for its effect, so it is always
// Ordered.
Effect effect_of_packed(const Call& call);
// Whether it retains an argument, or its result shares memory with an argument.
bool keeps_arguments(const Call& call);
// Whether it returns its result as a value for now, and will write it into a tensor after the
// operands.
bool awaits_destination(const Call& call);
// The attributes that are passed to the function, in its order.
std::vector<std::pair<String, Any>> passed_attributes(const Call& call);

// The call of the packed function that computes the operator (Operator::packed). Omitted optional
// operands become absent ones.
Ref<const Call> as_packed_call(const Operator& op, const Call& call, const TypeRef& type);

// Throws Usage unless the call matches its signature or intrinsic, has only valid properties, and
// does not state elements of its result, which would not be checked. Unknown names that begin with
// "memory." are also errors.
void check_packed_call(const Call& call, const Variances& variances);

}  // namespace tenon::graph

// Operators on string tensors. No kernel takes strings: an operator that moves elements moves their
// indices instead, and one that compares them compares ranks. So what moves numbers moves strings,
// and the family `text` has the few operators that read them.
#pragma once

#include "graph/ir/builder.h"
#include "graph/ir/op.h"

namespace tenon::graph {

// Whether an operand of the call is a string tensor, though the operator computes with numbers.
bool computes_on_strings(const Operator& op, const Call& call);

// The call's result, of type `result`, made of operators that take no strings and those of the
// family `text`: with `x` and `y` joined to one list `all` of strings,
//
//   concat(x, y)  becomes  text_take(all, concat(places of x in all, places of y))
//   equal(x, y)   becomes  equal(ranks of x in all, ranks of y)
Operand expand_strings(Builder& b, const Call& call, const TypeRef& result);

}  // namespace tenon::graph

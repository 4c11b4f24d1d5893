// The type of a call of an operator: the result of its type rule, with sizes of bounded length.
#pragma once

#include "graph/ir/infer.h"

namespace tenon::graph {

// The type of `c`, whose callee is an operator. Appends new symbols and unproved conditions to
// `out`, and sets `out->spelt_out` if the type names large sizes by symbols. Throws Usage without a
// span.
TypeRef infer_operator_call(const Call& c, const InferOptions& options, Inferred* out);

}  // namespace tenon::graph

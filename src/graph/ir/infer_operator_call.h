// The type of a call of an operator: what its rule says, kept to sizes of a bounded length.
#pragma once

#include "graph/ir/infer.h"

namespace tenon::graph {

// The type of `c`, whose callee is an operator. Appends the symbols that it makes and the
// conditions that it can't prove to `out`, and sets `out->spelt_out` where the type names large
// sizes by symbols. Throws Error (Usage) without a span.
TypeRef infer_operator_call(const Call& c, const InferOptions& options, Inferred* out);

}  // namespace tenon::graph

// fold_batch_norm: folds a batch norm of constants into the convolution before it, and turns any
// other one of constants into a multiplication and an addition, where that keeps its digits and its
// range (docs/semantics.md).
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module fold_batch_norm(const Module& module, PassContext& cx);

}  // namespace tenon::graph

// fold_batch_norm: a batch norm behind a convolution goes into its weights and bias; any other
// becomes one multiplication and one addition.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module fold_batch_norm(const Module& module, PassContext& cx);

}  // namespace tenon::graph

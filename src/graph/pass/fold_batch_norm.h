// fold_batch_norm: folds a batch norm after a convolution into its weights and bias, and turns any
// other into one multiplication and one addition.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module fold_batch_norm(const Module& module, PassContext& cx);

}  // namespace tenon::graph

// combine_layer_norm: replaces a layer normalisation that is written out by one call of layer_norm.
//
//   mean     = reduce_mean(x)                over the last axes, kept as 1
//   centred  = sub(x, mean)
//   variance = reduce_mean(mul(centred, centred))
//   y        = div(centred, sqrt(add(variance, epsilon)))
//   mul(y, scale), add(that, bias)           each where it broadcasts to the normalised axes
//
// The intermediate values must have no other uses, so that nothing is computed twice.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module combine_layer_norm(const Module& module, PassContext& cx);

}  // namespace tenon::graph

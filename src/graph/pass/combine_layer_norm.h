// combine_layer_norm: a layer normalisation that a model spells out is one call of layer_norm.
//
//   mean     = reduce_mean(x)                over the last axes, kept as 1
//   centred  = sub(x, mean)
//   variance = reduce_mean(mul(centred, centred))
//   y        = div(centred, sqrt(add(variance, epsilon)))
//   mul(y, scale), add(that, bias)           each where it broadcasts to the normalised axes
//
// What stands between is used by the chain alone, so nothing is computed twice.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module combine_layer_norm(const Module& module, PassContext& cx);

}  // namespace tenon::graph

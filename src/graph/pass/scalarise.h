// scalarise: computes numbers of rank 0 in registers. A loop's variable becomes a scalar if its
// next value comes from such numbers alone, and so do elementwise operators on them; a tensor is
// made only where one is needed. ONNX's loops count with tensors.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module scalarise(const Module& module, PassContext& context);

}  // namespace tenon::graph

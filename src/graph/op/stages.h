// Stages of a Compute that loop/compute.h has no constructor for.
#pragma once

#include "graph/op/index.h"

namespace tenon::graph {

// out[i...] = body(i...), in increasing order along `axis`: body may load `out` at lower indices of
// that axis, and must guard the first element itself.
StageRef scan_stage(const BufferRef& out, int64_t axis,
                    const std::function<Scalar(const Indices& indices)>& body);

struct Update {
  Indices indices;  // of the element of `out`
  Scalar value;
};

// First out[i...] = body(i...); then for each point p... < extents, in row-major order,
// out[update.indices] = reduction(out[update.indices], update.value); kNone replaces.
StageRef scatter_stage(const BufferRef& out,
                       const std::function<Scalar(const Indices& indices)>& body,
                       loop::Reduction reduction, const std::vector<Dim>& extents,
                       const std::function<Update(const Indices& point)>& update);

}  // namespace tenon::graph

#include "graph/op/stages.h"

namespace tenon::graph {
namespace {

Array<Ref<const loop::Var>> variables(const char* name, size_t count, Indices* indices) {
  Array<Ref<const loop::Var>> out;
  for (size_t i = 0; i < count; ++i) {
    Ref<const loop::Var> v = loop::var(cat(name, i), i64);
    out.push_back(v);
    indices->push_back(v);
  }
  return out;
}

}  // namespace

StageRef scan_stage(const BufferRef& out, int64_t axis,
                    const std::function<Scalar(const Indices& indices)>& body) {
  Ref<loop::Stage> stage = make<loop::Stage>();
  Indices indices;
  stage->kind = loop::StageKind::kScan;
  stage->out = out;
  stage->axes = variables("i", out->shape.size(), &indices);
  stage->body = body(indices);
  stage->scan_axis = axis;
  return stage;
}

StageRef scatter_stage(const BufferRef& out,
                       const std::function<Scalar(const Indices& indices)>& body,
                       loop::Reduction reduction, const std::vector<Dim>& extents,
                       const std::function<Update(const Indices& point)>& update) {
  Ref<loop::Stage> stage = make<loop::Stage>();
  Indices indices, point;
  stage->kind = loop::StageKind::kScatter;
  stage->out = out;
  stage->axes = variables("i", out->shape.size(), &indices);
  stage->body = body(indices);
  stage->reduction = reduction;
  stage->reduce_axes = variables("p", extents.size(), &point);
  stage->reduce_extents = Array<Dim>(extents);
  stage->accumulate = out->dtype;
  Update u = update(point);
  stage->scatter_indices = Array<loop::ExprRef>(u.indices);
  stage->update = u.value;
  return stage;
}

}  // namespace tenon::graph

#include "graph/op/pointwise.h"

#include "graph/op/index.h"
#include "loop/cost.h"
#include "loop/walk.h"

namespace tenon::graph {
namespace {

// The element's expression over variables.
Scalar symbolic_element(const Operator& op, const InferContext& cx) {
  Elements x;
  for (size_t i = 0; i < cx.arg_count(); ++i) {
    DataType dtype = cx.has(i) ? dtype_of(cx.type(i)) : DataType();
    if (dtype == string_elements) dtype = i64;  // computed with numbers instead (strings.h)
    x.push_back(cx.has(i) ? loop::var("x", dtype) : Scalar());
  }
  x.resize(std::max(x.size(), op.operands.size()));
  return op.element(cx, x);
}

// Whether the predicate holds for a part of the element's expression.
bool has_part(const Operator& op, const Call& call, bool (*predicate)(const loop::Expr&)) {
  bool found = false;
  const InferContext cx(call, nullptr);
  loop::post_order(symbolic_element(op, cx),
                   [&](const Scalar& e) { found = found || predicate(*e); });
  return found;
}

TypeRef infer_pointwise(InferContext& cx) {
  for (size_t i = 1; i < cx.arg_count(); ++i) {
    if (cx.has(i)) require_same_dtype(cx, i, 0);
  }
  std::vector<Dim> dims = broadcast_operands(cx);
  return tensor_type(symbolic_element(cx.op(), cx)->dtype, dims);
}

loop::ComputeRef lower_pointwise(const LowerContext& cx) {
  const InferContext& info = cx.info();
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    Elements x(std::max(info.arg_count(), info.op().operands.size()));
    for (size_t k = 0; k < info.arg_count(); ++k) {
      if (info.has(k)) x[k] = load_broadcast(cx.input(k), i, dims_of(cx.output()));
    }
    return info.op().element(info, x);
  })});
}

}  // namespace

Operator pointwise(Operator op) {
  if (!op.infer) op.infer = infer_pointwise;
  if (!op.lower) op.lower = lower_pointwise;
  if (!op.sample) op.sample = sample_pointwise;
  return op;
}

std::vector<Dim> broadcast_operands(InferContext& cx) {
  std::vector<std::vector<Dim>> shapes;
  for (size_t i = 0; i < cx.arg_count(); ++i) {
    if (cx.has(i)) shapes.push_back(dims_of(cx.tensor(i)));
  }
  return cx.broadcast_shapes(shapes);
}

Sample sample_pointwise(const Operator& op, uint64_t seed) {
  Random random(seed);
  DataType dtype = random.dtype(op.operands[0].dtypes);
  std::vector<int64_t> a = random.shape(0, 4), b = a;
  if (op.operands.size() == 1) return {{sample_tensor(dtype, a)}, {}};
  for (int64_t& n : b) {
    if (random.between(0, 3) == 0) n = 1;
  }
  b.erase(b.begin(), b.begin() + random.between(0, static_cast<int64_t>(b.size())));
  if (random.coin()) std::swap(a, b);
  return {{sample_tensor(dtype, a), sample_tensor(dtype, b)}, {}};
}

bool is_costly(const Operator& op, const Call& call) {
  return op.element ? has_part(op, call, loop::is_costly) : !op.cheap;
}

bool needs_kernel(const Operator& op, const Call& call) {
  return op.element && has_part(op, call, loop::needs_kernel);
}

}  // namespace tenon::graph

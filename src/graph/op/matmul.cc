// The matrix product, as in numpy.matmul: batches broadcast, and operands of rank 1 are a row on
// the left and a column on the right, whose axis the result drops. f16 is summed in f32.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

// The operands as stacks of matrices.
struct Product {
  std::vector<Dim> a_batch, b_batch;
  std::optional<Dim> rows, columns;  // nullopt if the operand is a vector
  Dim a_depth, b_depth;              // the size of the summed axis in each operand
};

Product product_of(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  Product p;
  p.a_depth = a.back();
  if (a.size() > 1) {
    p.rows = a[a.size() - 2];
    p.a_batch.assign(a.begin(), a.end() - 2);
  }
  p.b_depth = b[b.size() > 1 ? b.size() - 2 : 0];
  if (b.size() > 1) {
    p.columns = b.back();
    p.b_batch.assign(b.begin(), b.end() - 2);
  }
  return p;
}

TypeRef infer_matmul(InferContext& cx) {
  const TensorType& a = cx.tensor(0);
  const TensorType& b = cx.tensor(1);
  require_same_dtype(cx, 1, 0);
  for (size_t i : {0, 1}) {
    if (cx.tensor(i).rank == 0)
      cx.fail(cat(cx.operand_text(i), " has rank 0, expected at least 1"));
  }
  Product p = product_of(dims_of(a), dims_of(b));
  cx.require_equal(p.a_depth, p.b_depth,
                   "last axis of 'a' and last but one axis of 'b' (the only one of a vector)");
  std::vector<Dim> dims = cx.broadcast_shapes({p.a_batch, p.b_batch});
  if (p.rows) dims.push_back(*p.rows);
  if (p.columns) dims.push_back(*p.columns);
  return tensor_type(a.dtype, dims);
}

loop::ComputeRef lower_matmul(const LowerContext& cx) {
  const BufferRef &a = cx.input(0), &b = cx.input(1), &y = cx.output();
  Product p = product_of(dims_of(a), dims_of(b));
  DataType dtype = wide(a->dtype);
  std::vector<Dim> batch = dims_of(y);
  if (p.columns) batch.pop_back();
  if (p.rows) batch.pop_back();

  auto body = [&](const Indices& i, const Indices& k) {
    Indices batch_index(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch.size()));
    auto matrix = [&](const BufferRef& m, const Indices& rest) {
      Indices at = batch_index;
      std::vector<Dim> space = batch, own = dims_of(m);
      // A vector has no batch; a matrix has the product's batch, broadcast.
      if (m->shape.size() == 1) at.clear(), space.clear();
      for (size_t r = 0; r < rest.size(); ++r) {
        at.push_back(rest[r]);
        space.push_back(own[own.size() - rest.size() + r]);
      }
      return as(dtype, load_broadcast(m, at, space));
    };
    size_t next = batch.size();
    Indices left, right;
    if (p.rows) left.push_back(i[next++]);
    left.push_back(k[0]);
    right.push_back(within(k[0], p.a_depth, p.b_depth));
    if (p.columns) right.push_back(i[next]);
    return matrix(a, left) * matrix(b, right);
  };
  return cx.compute({loop::reduce_stage(y, loop::Reduction::kSum, {p.a_depth}, body)});
}

Sample sample_matmul(const Operator& op, uint64_t seed) {
  Random random(seed);
  DataType dtype = random.dtype(op.operands[0].dtypes);
  int64_t m = random.between(1, 4), k = random.between(1, 4), n = random.between(1, 4);
  std::vector<int64_t> batch = random.shape(0, 2), a = batch, b = batch;
  b.erase(b.begin(), b.begin() + random.between(0, static_cast<int64_t>(b.size())));
  bool row = random.between(0, 4) == 0, column = random.between(0, 4) == 0;
  if (row)
    a = {k};
  else
    a.insert(a.end(), {m, k});
  if (column)
    b = {k};
  else
    b.insert(b.end(), {k, n});
  return {{sample_tensor(dtype, a), sample_tensor(dtype, b)}, {}};
}

}  // namespace

void register_matmul(OperatorTable& table) {
  table.add({.name = "matmul",
             .kind = OpKind::kContraction,
             .operands = {{"a", kNumbers}, {"b", kNumbers}},
             .attrs = {},
             .summary = "the matrix product; batches broadcast, vectors are promoted",
             .infer = infer_matmul,
             .lower = lower_matmul,
             .sample = sample_matmul});
}

}  // namespace tenon::graph

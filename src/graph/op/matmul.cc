// The matrix product, as in numpy.matmul: batches broadcast, and operands of rank 1 are a row on
// the left and a column on the right, whose axis the result drops. f16 is summed in f32.
//
// matmul_integer is the product of integers of 8 bits, less their zero points, summed in i32, as
// ONNX's MatMulInteger.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/integer_product.h"
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

TypeRef infer_product(InferContext& cx, DataType result) {
  const TensorType& a = cx.tensor(0);
  const TensorType& b = cx.tensor(1);
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
  return tensor_type(result, dims);
}

TypeRef infer_matmul(InferContext& cx) {
  require_same_dtype(cx, 1, 0);
  return infer_product(cx, cx.tensor(0).dtype);
}

// The factor that element `at` of an operand is.
using Factor = std::function<Scalar(size_t operand, const Indices& at)>;

loop::ComputeRef lower_product(const LowerContext& cx, const Factor& factor) {
  const BufferRef &a = cx.input(0), &b = cx.input(1), &y = cx.output();
  Product p = product_of(dims_of(a), dims_of(b));
  std::vector<Dim> batch = dims_of(y);
  if (p.columns) batch.pop_back();
  if (p.rows) batch.pop_back();

  auto body = [&](const Indices& i, const Indices& k) {
    Indices batch_index(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch.size()));
    auto matrix = [&](size_t operand, const Indices& rest) {
      const BufferRef& m = cx.input(operand);
      Indices at = batch_index;
      std::vector<Dim> space = batch, own = dims_of(m);
      // A vector has no batch; a matrix has the product's batch, broadcast.
      if (m->shape.size() == 1) at.clear(), space.clear();
      for (size_t r = 0; r < rest.size(); ++r) {
        at.push_back(rest[r]);
        space.push_back(own[own.size() - rest.size() + r]);
      }
      return factor(operand, loop::broadcast_indices(m, at, space));
    };
    size_t next = batch.size();
    Indices left, right;
    if (p.rows) left.push_back(i[next++]);
    left.push_back(k[0]);
    right.push_back(within(k[0], p.a_depth, p.b_depth));
    if (p.columns) right.push_back(i[next]);
    return matrix(0, left) * matrix(1, right);
  };
  return cx.compute({loop::reduce_stage(y, loop::Reduction::kSum, {p.a_depth}, body)});
}

loop::ComputeRef lower_matmul(const LowerContext& cx) {
  const DataType dtype = wide(cx.input(0)->dtype);
  return lower_product(cx, [&](size_t operand, const Indices& at) {
    return as(dtype, load(cx.input(operand), at));
  });
}

TypeRef infer_matmul_integer(InferContext& cx) {
  for (size_t operand : {0, 1}) require_zero_point(cx, operand, operand + 2);
  return infer_product(cx, i32);
}

loop::ComputeRef lower_matmul_integer(const LowerContext& cx) {
  return lower_product(
      cx, [&](size_t operand, const Indices& at) { return centred(cx, operand, operand + 2, at); });
}

struct Shapes {
  std::vector<int64_t> a, b;
};
Shapes sample_shapes(Random& random) {
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
  return {a, b};
}

Sample sample_matmul(const Operator& op, uint64_t seed) {
  Random random(seed);
  const DataType dtype = random.dtype(op.operands[0].dtypes);
  const Shapes shapes = sample_shapes(random);
  return {{sample_tensor(dtype, shapes.a), sample_tensor(dtype, shapes.b)}, {}};
}

Sample sample_matmul_integer(const Operator&, uint64_t seed) {
  Random random(seed);
  const Shapes shapes = sample_shapes(random);
  std::vector<TypeRef> operands, zeros;
  for (const auto& shape : {shapes.a, shapes.b}) {
    const DataType dtype = random.dtype(kBytes);
    operands.push_back(sample_tensor(dtype, shape));
    zeros.push_back(sample_zero_point(random, dtype, shape));
  }
  operands.insert(operands.end(), zeros.begin(), zeros.end());
  return {operands, {}};
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
  table.add({.name = "matmul_integer",
             .kind = OpKind::kContraction,
             .operands = {{"a", kBytes},
                          {"b", kBytes},
                          {"a_zero", kBytes, OperandSpec::kOptional},
                          {"b_zero", kBytes, OperandSpec::kOptional}},
             .attrs = {},
             .summary = "the product of (a - a_zero) and (b - b_zero) in i32; a zero point "
                        "broadcasts to its operand and has its dtype",
             .infer = infer_matmul_integer,
             .lower = lower_matmul_integer,
             .sample = sample_matmul_integer});
}

}  // namespace tenon::graph

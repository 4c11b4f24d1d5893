// Operators that make elements from sizes and scalars: full, range, eye, shape_of, size_of,
// one_hot, trilu.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

Scalar only_element(const BufferRef& b) {
  return load(b, Indices(b->shape.size(), index(0)));
}

void require_sizes(InferContext& cx, const std::vector<Dim>& dims) {
  for (const Dim& d : dims) {
    cx.require_less_equal(0, d, cat("a size is not negative"));
  }
}

// ---- full ----

TypeRef infer_full(InferContext& cx) {
  DataType dtype = cx.tensor(0).dtype;
  require_one_element(cx, 0);
  std::vector<Dim> shape = cx.attr_dims("shape");
  require_sizes(cx, shape);
  return tensor_type(dtype, shape);
}

loop::ComputeRef lower_full(const LowerContext& cx) {
  return cx.compute(
      {map_stage(cx.output(), [&](const Indices&) { return only_element(cx.input(0)); })});
}

Values full_values(const InferContext& cx, const TensorType& result) {
  auto values = values_of(cx, 0);
  auto count = carried_count(result);
  if (!values || !count) return std::nullopt;
  return std::vector<Dim>(static_cast<size_t>(*count), values->front());
}

Sample sample_full(const Operator& op, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), {})},
          attrs({{"shape", attr_dims(to_dims(random.shape(0, 4)))}})};
}

// ---- range ----

TypeRef infer_range(InferContext& cx) {
  DataType dtype = cx.tensor(0).dtype;
  require_same_dtype(cx, 1, 0);
  for (size_t i : {0, 1}) require_one_element(cx, i);
  Dim count = cx.attr_dim("count");
  require_sizes(cx, {count});
  return tensor_type(dtype, {count});
}

loop::ComputeRef lower_range(const LowerContext& cx) {
  DataType dtype = cx.output()->dtype, inner = wide(dtype);
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    return as(dtype, as(inner, only_element(cx.input(0))) +
                         as(inner, i[0]) * as(inner, only_element(cx.input(1))));
  })});
}

Values range_values(const InferContext& cx, const TensorType& result) {
  auto start = values_of(cx, 0), delta = values_of(cx, 1);
  auto count = carried_count(result);
  if (!start || !delta || !count) return std::nullopt;
  std::vector<Dim> out;
  try {
    for (int64_t i = 0; i < *count; ++i) out.push_back(start->front() + delta->front() * i);
  } catch (const SizeError&) {  // an element would wrap
    return std::nullopt;
  }
  return fitting(result.dtype, out);
}

Sample sample_range(const Operator& op, uint64_t seed) {
  Random random(seed);
  DataType dtype = random.dtype(op.operands[0].dtypes);
  return {{sample_tensor(dtype, {}), sample_tensor(dtype, {})},
          attrs({{"count", random.between(0, 9)}})};
}

// ---- eye ----

TypeRef infer_eye(InferContext& cx) {
  std::vector<Dim> shape = cx.attr_dims("shape");
  if (shape.size() != 2) cx.fail(cat("'shape' has ", shape.size(), " entries, expected 2"));
  DataType dtype = cx.attr_dtype("dtype");
  if (!contains(kOrdered, dtype)) {
    cx.fail(cat("'dtype' is ", to_text(dtype), ", expected ", describe(kOrdered)));
  }
  require_sizes(cx, shape);
  return tensor_type(dtype, shape);
}

loop::ComputeRef lower_eye(const LowerContext& cx) {
  int64_t k = cx.info().attr_int("k");
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    return as(cx.output()->dtype, eq(i[1] - i[0], index(k)));
  })});
}

Sample sample_eye(const Operator&, uint64_t seed) {
  Random random(seed);
  return {{},
          attrs({{"shape", attr_dims(to_dims(random.shape(2, 2)))},
                 {"k", random.between(-2, 2)},
                 {"dtype", random.dtype(kOrdered)}})};
}

// ---- shape_of, size_of ----

// The range of axes that shape_of returns, clamped like ONNX's Shape.
std::pair<int64_t, int64_t> told_axes(const InferContext& cx, int64_t rank) {
  auto clamped = [&](int64_t at) {
    if (at < 0) at += rank;
    return std::max<int64_t>(0, std::min(at, rank));
  };
  int64_t start = clamped(cx.attr_int("start")), end = clamped(cx.attr_int("end"));
  return {start, std::max(start, end)};
}

TypeRef infer_shape_of(InferContext& cx) {
  auto [start, end] = told_axes(cx, cx.tensor(0).rank);
  return tensor_type(i64, {Dim(end - start)});
}

Values shape_values(const InferContext& cx, const TensorType& result) {
  if (!carried_count(result)) return std::nullopt;
  const TensorType& x = cx.tensor(0);
  auto [start, end] = told_axes(cx, x.rank);
  return std::vector<Dim>(x.dims.begin() + start, x.dims.begin() + end);
}

loop::ComputeRef lower_shape_of(const LowerContext& cx) {
  auto [start, end] = told_axes(cx.info(), cx.info().tensor(0).rank);
  const BufferRef& x = cx.input(0);
  return cx.compute({map_stage(cx.output(), [&, start = start, end = end](const Indices& i) {
    Scalar value = index(0);
    for (int64_t k = end; k-- > start;) {
      Scalar own = size(x->shape[static_cast<size_t>(k)]);
      value = k == end - 1 ? own : select(eq(i[0], index(k - start)), own, value);
    }
    return value;
  })});
}

Sample sample_shape_of(const Operator& op, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), random.shape(0, 5))},
          attrs({{"start", random.between(-3, 3)}, {"end", random.between(-3, 6)}})};
}

TypeRef infer_size_of(InferContext& cx) {
  cx.tensor(0);
  return tensor_type(i64, {});
}

Values size_values(const InferContext& cx, const TensorType&) {
  return std::vector<Dim>{product(dims_of(cx.tensor(0)))};
}

loop::ComputeRef lower_size_of(const LowerContext& cx) {
  Dim count = product(dims_of(cx.input(0)));
  return cx.compute({map_stage(cx.output(), [&](const Indices&) { return size(count); })});
}

Sample sample_size_of(const Operator& op, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), random.shape(0, 5))}, {}};
}

// ---- one_hot ----

TypeRef infer_one_hot(InferContext& cx) {
  const TensorType& indices = cx.tensor(0);
  const TensorType& values = cx.tensor(1);
  require_rank(cx, 1, 1);
  cx.require_equal(values.dims[0], 2, "'values' are the off and the on value");
  Dim depth = cx.attr_dim("depth");
  require_sizes(cx, {depth});
  std::vector<Dim> dims = dims_of(indices);
  dims.insert(dims.begin() + cx.axis(cx.attr_int("axis"), indices.rank + 1), depth);
  return tensor_type(values.dtype, dims);
}

// An index in -depth ... -1 counts from the end; any other index out of range gives only off
// values.
loop::ComputeRef lower_one_hot(const LowerContext& cx) {
  const BufferRef &indices = cx.input(0), &values = cx.input(1), &y = cx.output();
  int64_t axis = cx.info().axis(cx.info().attr_int("axis"), cx.info().tensor(0).rank + 1);
  return cx.compute({map_stage(y, [&](const Indices& i) {
    Indices at = i;
    Scalar place = at[static_cast<size_t>(axis)];
    at.erase(at.begin() + axis);
    Scalar hot = as(i64, load(indices, at));
    Scalar from_end = hot + size(y->shape[static_cast<size_t>(axis)]);
    Scalar on = eq(place, select(lt(hot, index(0)), from_end, hot));
    return select(on, load_within(values, {index(1)}, {Dim(2)}),
                  load_within(values, {index(0)}, {Dim(2)}));
  })});
}

Sample sample_one_hot(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 3);
  int64_t rank = static_cast<int64_t>(shape.size()) + 1;
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape),
           sample_tensor(random.dtype(op.operands[1].dtypes), {2})},
          attrs({{"depth", random.between(0, 5)}, {"axis", random.between(-rank, rank - 1)}})};
}

// ---- trilu ----

TypeRef infer_trilu(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (x.rank < 2) cx.fail(cat(cx.operand_text(0), " has rank ", x.rank, ", expected at least 2"));
  if (cx.has(1)) {
    require_one_element(cx, 1);
  }
  return tensor_type(x.dtype, dims_of(x));
}

loop::ComputeRef lower_trilu(const LowerContext& cx) {
  const BufferRef& x = cx.input(0);
  bool upper = cx.info().attr_bool("upper");
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    Scalar k = cx.info().has(1) ? only_element(cx.input(1)) : index(0);
    // The offset may be any i64; adding to it could overflow.
    Scalar distance = i[i.size() - 1] - i[i.size() - 2];
    Scalar kept = upper ? le(k, distance) : le(distance, k);
    return select(kept, load(x, i), loop::zero(x->dtype));
  })});
}

Sample sample_trilu(const Operator& op, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), random.shape(2, 4)),
           random.coin() ? sample_tensor(i64, {}) : unit_type()},
          attrs({{"upper", random.coin()}})};
}

}  // namespace

void register_fill(OperatorTable& table) {
  table.add({.name = "full",
             .kind = OpKind::kMovement,
             .operands = {{"value", kData}},
             .attrs = {{"shape", AttrKind::kDims, nullptr, "of the result"}},
             .summary = "one element everywhere",
             .infer = infer_full,
             .lower = lower_full,
             .value = full_values,
             .sample = sample_full});
  table.add({.name = "range",
             .kind = OpKind::kMovement,
             .operands = {{"start", kNumbers}, {"delta", kNumbers}},
             .attrs = {{"count", AttrKind::kDim, nullptr, "of elements"}},
             .summary = "start + i * delta",
             .infer = infer_range,
             .lower = lower_range,
             .value = range_values,
             .sample = sample_range});
  table.add({.name = "eye",
             .kind = OpKind::kMovement,
             .operands = {},
             .attrs = {{"shape", AttrKind::kDims, nullptr, "of the result, two sizes"},
                       {"k", AttrKind::kInt, "0", "the diagonal: column - row"},
                       {"dtype", AttrKind::kDType, "f32", "of the result"}},
             .summary = "ones on a diagonal, zeros elsewhere",
             .infer = infer_eye,
             .lower = lower_eye,
             .sample = sample_eye});
  table.add({.name = "shape_of",
             .kind = OpKind::kMovement,
             .operands = {{"x", kData}},
             .attrs = {{"start", AttrKind::kInt, "0", "first axis; clamped"},
                       {"end", AttrKind::kInt, "64", "axis after the last; clamped"}},
             .summary = "the sizes of x (i64)",
             .infer = infer_shape_of,
             .lower = lower_shape_of,
             .value = shape_values,
             .sample = sample_shape_of});
  table.add({.name = "size_of",
             .kind = OpKind::kMovement,
             .operands = {{"x", kData}},
             .attrs = {},
             .summary = "the number of elements of x (i64, rank 0)",
             .infer = infer_size_of,
             .lower = lower_size_of,
             .value = size_values,
             .sample = sample_size_of});
  table.add(
      {.name = "one_hot",
       .kind = OpKind::kMovement,
       .operands = {{"indices", kNumbers}, {"values", kData}},
       .attrs = {{"depth", AttrKind::kDim, nullptr, "size of the new axis"},
                 {"axis", AttrKind::kInt, "-1", "position of the new axis"}},
       .summary = "values[1] where the place on the new axis is the index, values[0] elsewhere",
       .infer = infer_one_hot,
       .lower = lower_one_hot,
       .sample = sample_one_hot});
  table.add(
      {.name = "trilu",
       .kind = OpKind::kMovement,
       .operands = {{"x", kOrdered | kComplex}, {"k", only(i64), OperandSpec::kOptional}},
       .attrs = {{"upper", AttrKind::kBool, "true", "keep the upper triangle, else the lower"}},
       .summary = "one triangle of the last two axes, 0 elsewhere; k shifts the diagonal",
       .infer = infer_trilu,
       .lower = lower_trilu,
       .sample = sample_trilu});
}

}  // namespace tenon::graph

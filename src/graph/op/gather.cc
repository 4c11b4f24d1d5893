// Operators that pick elements by indices that are data. An index in -n ... -1 counts from the end;
// any other index out of range is an error at run time.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

Scalar checked_load(const BufferRef& indices, const Indices& at, const Dim& extent) {
  return loop::checked_index(as(i64, load(indices, at)), extent);
}

TypeRef sample_indices(Random& random, const std::vector<int64_t>& shape) {
  return sample_tensor(random.coin() ? i64 : i32, shape);
}

// ---- gather ----

TypeRef infer_gather(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  const TensorType& indices = cx.tensor(1);
  auto axis = static_cast<std::ptrdiff_t>(cx.axis(cx.attr_int("axis"), x.rank));
  std::vector<Dim> dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  return tensor_type(x.dtype, dims);
}

loop::ComputeRef lower_gather(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &indices = cx.input(1);
  size_t axis =
      static_cast<size_t>(cx.info().axis(cx.info().attr_int("axis"), cx.info().tensor(0).rank));
  size_t picked = indices->shape.size();
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    auto from = i.begin() + static_cast<std::ptrdiff_t>(axis);
    auto to = from + static_cast<std::ptrdiff_t>(picked);
    Indices at(i.begin(), from);
    at.push_back(checked_load(indices, Indices(from, to), x->shape[axis]));
    at.insert(at.end(), to, i.end());
    return load(x, at);
  })});
}

Values gathered_values(const InferContext& cx, const TensorType& result) {
  auto values = values_of(cx, 0), indices = values_of(cx, 1);
  if (!values || !indices || !carried_count(result)) return std::nullopt;
  std::vector<Dim> out;
  int64_t n = static_cast<int64_t>(values->size());
  for (const Dim& d : *indices) {
    auto at = d.as_const();
    if (!at || *at < -n || *at >= n) return std::nullopt;
    out.push_back((*values)[static_cast<size_t>(*at < 0 ? *at + n : *at)]);
  }
  return out;
}

Sample sample_gather(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  int64_t rank = static_cast<int64_t>(shape.size()), axis = random.between(0, rank - 1);
  shape[static_cast<size_t>(axis)] = random.between(1, 4);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape),
           sample_indices(random, random.shape(0, 2))},
          attrs({{"axis", random.coin() ? axis : axis - rank}})};
}

// ---- gather_elements ----

TypeRef infer_gather_elements(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  const TensorType& indices = cx.tensor(1);
  require_rank(cx, 1, x.rank);
  size_t axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (i == axis) continue;
    cx.require_less_equal(indices.dims[i], x.dims[i],
                          cat("axis ", i, " of 'indices' lies within 'x'"));
  }
  return tensor_type(x.dtype, dims_of(indices));
}

loop::ComputeRef lower_gather_elements(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &indices = cx.input(1);
  size_t axis =
      static_cast<size_t>(cx.info().axis(cx.info().attr_int("axis"), cx.info().tensor(0).rank));
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    Indices at = i;
    for (size_t k = 0; k < at.size(); ++k) at[k] = within(i[k], indices->shape[k], x->shape[k]);
    at[axis] = checked_load(indices, i, x->shape[axis]);
    return load(x, at);
  })});
}

Sample sample_gather_elements(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4), picked;
  int64_t rank = static_cast<int64_t>(shape.size()), axis = random.between(0, rank - 1);
  shape[static_cast<size_t>(axis)] = random.between(1, 4);
  for (int64_t n : shape) picked.push_back(random.between(0, n));
  picked[static_cast<size_t>(axis)] = random.between(0, 6);
  return {
      {sample_tensor(random.dtype(op.operands[0].dtypes), shape), sample_indices(random, picked)},
      attrs({{"axis", random.coin() ? axis : axis - rank}})};
}

// ---- gather_nd ----

// How many axes of x an index tuple indexes.
int64_t tuple_length(const InferContext& cx, size_t i) {
  const TensorType& indices = cx.tensor(i);
  if (indices.rank == 0) cx.fail(cat(cx.operand_text(i), " has rank 0, expected at least 1"));
  auto length = indices.dims[static_cast<size_t>(indices.rank - 1)].as_const();
  if (!length) cx.fail(cat("the last axis of ", cx.operand_text(i), " must be a number"));
  return *length;
}

TypeRef infer_gather_nd(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  const TensorType& indices = cx.tensor(1);
  int64_t batch = cx.attr_int("batch_dims"), length = tuple_length(cx, 1);
  if (batch < 0 || batch >= std::min(x.rank + 1, indices.rank)) {
    cx.fail(cat("'batch_dims' is ", batch, ", but 'x' has rank ", x.rank, " and 'indices' ",
                indices.rank));
  }
  if (length < 0 || batch + length > x.rank) {
    cx.fail(cat("'indices' has ", length, " entries per index after ", batch,
                " batch axes, but 'x' has rank ", x.rank));
  }
  for (size_t i = 0; i < static_cast<size_t>(batch); ++i) {
    cx.require_equal(x.dims[i], indices.dims[i], cat("batch axis ", i, " of 'x' and of 'indices'"));
  }
  std::vector<Dim> dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + batch + length, x.dims.end());
  return tensor_type(x.dtype, dims);
}

loop::ComputeRef lower_gather_nd(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &indices = cx.input(1);
  size_t batch = static_cast<size_t>(cx.info().attr_int("batch_dims"));
  size_t length = static_cast<size_t>(tuple_length(cx.info(), 1));
  size_t outer = indices->shape.size() - 1;
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    Indices at, tuple(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(outer));
    for (size_t k = 0; k < batch; ++k) at.push_back(within(i[k], indices->shape[k], x->shape[k]));
    tuple.push_back(nullptr);
    for (size_t k = 0; k < length; ++k) {
      tuple.back() = index(static_cast<int64_t>(k));
      at.push_back(checked_load(indices, tuple, x->shape[batch + k]));
    }
    at.insert(at.end(), i.begin() + static_cast<std::ptrdiff_t>(outer), i.end());
    return load(x, at);
  })});
}

Sample sample_gather_nd(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  for (int64_t& n : shape) n = std::max<int64_t>(n, 1);
  int64_t rank = static_cast<int64_t>(shape.size()), batch = random.between(0, rank - 1);
  std::vector<int64_t> indices(shape.begin(), shape.begin() + batch);
  for (int64_t i = random.between(0, 2); i > 0; --i) indices.push_back(random.between(1, 3));
  indices.push_back(random.between(1, rank - batch));
  return {
      {sample_tensor(random.dtype(op.operands[0].dtypes), shape), sample_indices(random, indices)},
      attrs({{"batch_dims", batch}})};
}

// ---- reverse_sequence ----

TypeRef infer_reverse_sequence(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  require_rank(cx, 1, 1);
  int64_t batch = cx.axis(cx.attr_int("batch_axis"), x.rank);
  int64_t time = cx.axis(cx.attr_int("time_axis"), x.rank);
  if (batch == time) cx.fail(cat("'batch_axis' and 'time_axis' are both ", batch));
  cx.require_equal(cx.tensor(1).dims[0], x.dims[static_cast<size_t>(batch)],
                   "size of 'lengths' and the batch axis of 'x'");
  return tensor_type(x.dtype, dims_of(x));
}

loop::ComputeRef lower_reverse_sequence(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &lengths = cx.input(1);
  int64_t rank = cx.info().tensor(0).rank;
  size_t batch = static_cast<size_t>(cx.info().axis(cx.info().attr_int("batch_axis"), rank));
  size_t time = static_cast<size_t>(cx.info().axis(cx.info().attr_int("time_axis"), rank));
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    Scalar length = load_within(lengths, {i[batch]}, {x->shape[batch]});
    Indices at = i;
    at[time] = loop::checked_index(length - index(1) - i[time], x->shape[time]);
    return select(lt(i[time], length), load(x, at), load(x, i));
  })});
}

Sample sample_reverse_sequence(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(2, 4);
  int64_t batch = random.between(0, 1);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape),
           sample_tensor(i64, {shape[static_cast<size_t>(batch)]})},
          attrs({{"batch_axis", batch}, {"time_axis", 1 - batch}})};
}

}  // namespace

void register_gather(OperatorTable& table) {
  table.add({.name = "gather",
             .kind = OpKind::kMovement,
             .operands = {{"x", kData}, {"indices", kIndices}},
             .attrs = {{"axis", AttrKind::kInt, "0", "that the indices are of"}},
             .summary = "slices of x along an axis, one per index",
             .infer = infer_gather,
             .lower = lower_gather,
             .value = gathered_values,
             .sample = sample_gather});
  table.add({.name = "gather_elements",
             .kind = OpKind::kMovement,
             .operands = {{"x", kData}, {"indices", kIndices}},
             .attrs = {{"axis", AttrKind::kInt, "0", "that the indices are of"}},
             .summary = "one element of x per index, at the index's own place on the other axes",
             .infer = infer_gather_elements,
             .lower = lower_gather_elements,
             .sample = sample_gather_elements});
  table.add({.name = "gather_nd",
             .kind = OpKind::kMovement,
             .operands = {{"x", kData}, {"indices", kIndices}},
             .attrs = {{"batch_dims", AttrKind::kInt, "0", "leading axes that both share"}},
             .summary = "slices of x at index tuples, which are the last axis of the indices",
             .infer = infer_gather_nd,
             .lower = lower_gather_nd,
             .sample = sample_gather_nd});
  table.add({.name = "reverse_sequence",
             .kind = OpKind::kMovement,
             .operands = {{"x", kData}, {"lengths", only(i64)}},
             .attrs = {{"batch_axis", AttrKind::kInt, "1", "along which the lengths are"},
                       {"time_axis", AttrKind::kInt, "0", "that is reversed"}},
             .summary = "the first lengths[b] steps of each sequence reversed, the rest kept",
             .infer = infer_reverse_sequence,
             .lower = lower_reverse_sequence,
             .sample = sample_reverse_sequence});
}

}  // namespace tenon::graph

// Operators whose result size depends on data, and operators that sort. Packed functions of
// src/library/algorithms and core compute them, called with the operands (None if absent), then the
// attributes.
#include "graph/op/families.h"
#include "graph/op/packed.h"

namespace tenon::graph {
namespace {

// ---- searching and sorting ----

TypeRef infer_nonzero(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  return tensor_type(i64, {std::max<int64_t>(x.rank, 1), cx.fresh("nonzero")});
}

Sample sample_nonzero(const Operator& op, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), random.shape(0, 4))}, {}};
}

TypeRef infer_topk(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  size_t axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
  Dim k = cx.attr_dim("k");
  cx.require_less_equal(0, k, "'k' is not negative");
  cx.require_less_equal(k, x.dims[axis], "'k' and the axis of 'x'");
  std::vector<Dim> dims = dims_of(x);
  dims[axis] = k;
  return tuple_type({tensor_type(x.dtype, dims), tensor_type(i64, dims)});
}

Sample sample_topk(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  int64_t axis = random.between(0, static_cast<int64_t>(shape.size()) - 1);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape)},
          attrs({{"k", random.between(0, shape[static_cast<size_t>(axis)])},
                 {"axis", axis},
                 {"largest", random.coin()},
                 {"sorted", true}})};
}

TypeRef infer_compress(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  const TensorType& condition = cx.tensor(1);
  require_rank(cx, 1, 1);
  if (cx.attr_bool("flatten")) {
    cx.require_less_equal(condition.dims[0], product(dims_of(x)),
                          "size of 'condition' and number of elements of 'x'");
    return tensor_type(x.dtype, {cx.fresh("kept")});
  }
  size_t axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
  cx.require_less_equal(condition.dims[0], x.dims[axis], "size of 'condition' and the axis of 'x'");
  std::vector<Dim> dims = dims_of(x);
  dims[axis] = cx.fresh("kept");
  return tensor_type(x.dtype, dims);
}

Sample sample_compress(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 3);
  int64_t axis = random.between(0, static_cast<int64_t>(shape.size()) - 1);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape),
           sample_tensor(boolean, {random.between(0, shape[static_cast<size_t>(axis)])})},
          attrs({{"axis", axis}})};
}

TypeRef infer_unique(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  bool flatten = cx.attr_bool("flatten");
  size_t axis = flatten ? 0 : static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
  Dim count = cx.fresh("unique");
  std::vector<Dim> dims = {count};
  if (!flatten) {
    dims = dims_of(x);
    dims[axis] = count;
  }
  return tuple_type({tensor_type(x.dtype, dims), tensor_type(i64, {count}),
                     tensor_type(i64, {flatten ? product(dims_of(x)) : x.dims[axis]}),
                     tensor_type(i64, {count})});
}

Sample sample_unique(const Operator& op, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), random.shape(1, 3))},
          attrs({{"flatten", random.coin()}, {"sorted", random.coin()}})};
}

TypeRef infer_non_max_suppression(InferContext& cx) {
  for (size_t i : {0, 1}) require_rank(cx, i, 3);
  const TensorType &boxes = cx.tensor(0), &scores = cx.tensor(1);
  cx.require_equal(boxes.dims[0], scores.dims[0], "batches of 'boxes' and of 'scores'");
  cx.require_equal(boxes.dims[1], scores.dims[2], "boxes of 'boxes' and of 'scores'");
  cx.require_equal(boxes.dims[2], 4, "numbers of a box");
  for (size_t i : {2, 3, 4}) {
    if (cx.has(i)) require_one_element(cx, i);
  }
  return tensor_type(i64, {cx.fresh("selected"), 3});
}

Sample sample_non_max_suppression(const Operator&, uint64_t seed) {
  Random random(seed);
  const int64_t batches = random.between(1, 2), boxes = random.between(0, 4);
  Sample s{{sample_tensor(f32, {batches, boxes, 4}),
            sample_tensor(f32, {batches, random.between(1, 2), boxes}), sample_tensor(i64, {1})},
           attrs({{"center_point_box", random.coin()}})};
  for (int threshold = 0; threshold < 2; ++threshold) {
    s.operands.push_back(random.coin() ? sample_tensor(f32, {1}) : unit_type());
  }
  return s;
}

// ---- growing ----

TypeRef infer_append(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  const TensorType& row = cx.tensor(1);
  require_same_dtype(cx, 1, 0);
  require_rank(cx, 0, row.rank + 1);
  std::vector<Dim> dims = dims_of(x);
  for (size_t axis = 1; axis < dims.size(); ++axis) {
    cx.require_equal(row.dims[axis - 1], dims[axis], cat("axis ", axis, " of 'x' and the row"));
  }
  dims[0] = dims[0] + 1;
  return tensor_type(x.dtype, dims);
}

Sample sample_append(const Operator& op, uint64_t seed) {
  Random random(seed);
  const DataType dtype = random.dtype(op.operands[0].dtypes);
  std::vector<int64_t> shape = random.shape(1, 4);
  return {{sample_tensor(dtype, shape), sample_tensor(dtype, {shape.begin() + 1, shape.end()})},
          {}};
}

// ---- sizes from data ----

TypeRef infer_reshape_dims(InferContext& cx) {
  for (size_t i : {0, 1}) require_rank(cx, i, 1);
  return tensor_type(i64, {cx.tensor(0).dims[0]});
}

// Carries the sizes if the list itself is known.
Values reshape_values(const InferContext& cx, const TensorType&) {
  auto shape = values_of(cx, 0), x = values_of(cx, 1);
  if (!shape || !x) return std::nullopt;
  Dim known = 1;
  std::optional<size_t> rest;
  for (size_t i = 0; i < shape->size(); ++i) {
    Dim& d = (*shape)[i];
    if (d.is_const(-1) && !rest) {
      rest = i;
      continue;
    }
    if (d.is_const(0) && !cx.attr_bool("allowzero")) {
      if (i >= x->size()) return std::nullopt;
      d = (*x)[i];
    } else if (!proves_less_equal(1, d)) {
      // May be 0 or negative: left to the function at run time.
      if (!proves_nonnegative(d) || !cx.attr_bool("allowzero")) return std::nullopt;
    }
    known = known * d;
  }
  if (rest) {
    if (known.is_const(0)) return std::nullopt;
    (*shape)[*rest] = floordiv(product(*x), known);
  }
  return shape;
}

Sample sample_reshape_dims(const Operator&, uint64_t) {
  return {{sample_tensor(i64, {2}), sample_tensor(i64, {3})}, {}};
}

TypeRef infer_slice_bounds(InferContext& cx) {
  for (size_t i = 0; i < cx.arg_count(); ++i) {
    if (!cx.has(i)) continue;
    require_rank(cx, i, 1);
    if (i > 1) {
      cx.require_equal(cx.tensor(1).dims[0], cx.tensor(i).dims[0],
                       cat("size of 'starts' and of ", cx.operand_text(i)));
    }
  }
  TypeRef per_axis = tensor_type(i64, {cx.tensor(0).dims[0]});
  return tuple_type({per_axis, per_axis, per_axis});
}

// Slices one axis, so that no axis appears twice.
Sample sample_slice_bounds(const Operator&, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(i64, {random.between(1, 4)}), sample_tensor(i64, {1}),
           sample_tensor(i64, {1}), random.coin() ? sample_tensor(i64, {1}) : unit_type()},
          {}};
}

TypeRef infer_range_count(InferContext& cx) {
  for (size_t i : {1, 2}) require_same_dtype(cx, i, 0);
  for (size_t i : {0, 1, 2}) require_one_element(cx, i);
  return tensor_type(i64, {});
}

Values range_count_values(const InferContext& cx, const TensorType&) {
  auto start = values_of(cx, 0), limit = values_of(cx, 1), delta = values_of(cx, 2);
  if (!start || !limit || !delta) return std::nullopt;
  auto step = delta->front().as_const();
  if (!step || *step == 0 || *step == INT64_MIN) return std::nullopt;
  Dim way = *step > 0 ? limit->front() - start->front() : start->front() - limit->front();
  return std::vector<Dim>{max(ceildiv(way, *step > 0 ? *step : -*step), 0)};
}

}  // namespace

void register_search(OperatorTable& table) {
  constexpr auto kOptional = OperandSpec::kOptional;
  table.add(packed("nonzero", "tenon.nonzero", {{"x", kElements}}, {},
                   "the indices of elements that are not 0, one column each (i64)", infer_nonzero,
                   sample_nonzero));
  table.add(packed("topk", "tenon.topk", {{"x", kNumbers}},
                   {{"k", AttrKind::kDim, nullptr, "how many"},
                    {"axis", AttrKind::kInt, "-1", "along which"},
                    {"largest", AttrKind::kBool, "true", "take the greatest, else the least"},
                    {"sorted", AttrKind::kBool, "true", "sort the results, else any order"}},
                   "the k greatest or least elements and their indices; of equal ones the first",
                   infer_topk, sample_topk));
  table.add(packed("compress", "tenon.compress", {{"x", kElements}, {"condition", kBools}},
                   {{"axis", AttrKind::kInt, "0", "to select along"},
                    {"flatten", AttrKind::kBool, "false", "select from the flattened elements"}},
                   "the slices of x whose condition is true; those beyond it are dropped",
                   infer_compress, sample_compress));
  table.add(packed(
      "unique", "tenon.unique", {{"x", kOrdered | kComplex}},
      {{"axis", AttrKind::kInt, "0", "of the slices"},
       {"flatten", AttrKind::kBool, "false", "compare the flattened elements"},
       {"sorted", AttrKind::kBool, "true", "sort the slices, else keep their order of appearance"}},
      "distinct slices: (values, first index, index of each input's, counts)", infer_unique,
      sample_unique));
  table.add(packed("non_max_suppression", "tenon.non_max_suppression",
                   {{"boxes", only(f32)},
                    {"scores", only(f32)},
                    {"max_output", only(i64), kOptional},
                    {"iou_threshold", only(f32), kOptional},
                    {"score_threshold", only(f32), kOptional}},
                   {{"center_point_box", AttrKind::kBool, "false",
                     "boxes are [x, y, width, height] and not two corners [y, x, y, x]"}},
                   "boxes [B, N, 4] that don't overlap a better one, as (batch, class, box)",
                   infer_non_max_suppression, sample_non_max_suppression));
  table.add(packed("append", "tenon.append", {{"x", kElements}, {"row", kElements}}, {},
                   "x [n, s...] with the row [s...] appended; in place at x's last use",
                   infer_append, sample_append));
  table.add(packed("reshape_dims", "tenon.shape.reshape",
                   {{"shape", only(i64)}, {"x_shape", only(i64)}},
                   {{"allowzero", AttrKind::kBool, "false", "0 is a size, not a copy of x's"}},
                   "a list of sizes with 0 and -1 resolved", infer_reshape_dims,
                   sample_reshape_dims, reshape_values));
  table.add(packed("slice_bounds", "tenon.shape.slice",
                   {{"x_shape", only(i64)},
                    {"starts", only(i64)},
                    {"ends", only(i64)},
                    {"axes", only(i64), kOptional},
                    {"steps", only(i64), kOptional}},
                   {}, "(first elements, sizes, steps) of a slice, per axis of x",
                   infer_slice_bounds, sample_slice_bounds));
  Operator range_count = packed("range_count", "tenon.shape.range_count",
                                {{"start", kNumbers}, {"limit", kNumbers}, {"delta", kNumbers}}, {},
                                "the number of elements of a range (i64, rank 0)",
                                infer_range_count, nullptr, range_count_values);
  range_count.no_sample = "fails on a delta of 0, and samples choose no elements";
  table.add(std::move(range_count));
}

}  // namespace tenon::graph

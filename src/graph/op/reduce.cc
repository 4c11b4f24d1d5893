// Reductions over given axes. Sums of f16 are kept in f32, sums for a mean of integers in i64.
#include "graph/op/families.h"
#include "graph/op/rows.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

using loop::Reduction;

Rows rows_of(const InferContext& cx, const TensorType& x) {
  return Rows(dims_of(x), normalized_axes(cx, cx.attr_ints("axes"), x.rank),
              cx.attr_bool("keepdims"));
}

TypeRef infer_reduce(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  return tensor_type(x.dtype, rows_of(cx, x).reduced_dims());
}

TypeRef infer_mean(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (contains(kInts, x.dtype)) {
    cx.require_less_equal(1, rows_of(cx, x).count(), "the mean of no integers");
  }
  return infer_reduce(cx);
}

// The reduction of each row, divided by the number of its elements for a mean.
loop::ComputeRef lower_rows(const LowerContext& cx, Reduction reduction, bool mean) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  Rows rows = rows_of(cx.info(), cx.info().tensor(0));
  // The maximum of booleans is their disjunction.
  if (x->dtype.is_bool() && reduction == Reduction::kMax) reduction = Reduction::kOr;
  if (x->dtype.is_bool() && reduction == Reduction::kMin) reduction = Reduction::kAnd;

  if (rows.extents().empty()) {  // each result is one element
    return cx.compute({map_stage(y, [&](const Indices& i) { return load(x, i); })});
  }
  bool sums = reduction == Reduction::kSum || reduction == Reduction::kProd;
  DataType dtype = sums ? wide(x->dtype) : x->dtype;
  if (mean && contains(kInts, dtype) && dtype != u64) dtype = i64;
  auto body = [&](const Indices& i) { return as(dtype, load(x, i)); };
  if (!mean) return cx.compute({rows.reduce(y, reduction, body)});

  BufferRef sum = rows.buffer("sum", dtype);
  Scalar count = as(dtype, size(rows.count()));
  return cx.compute({rows.reduce(sum, reduction, body), map_stage(y, [&](const Indices& i) {
                       return as(y->dtype, load(sum, i) / count);
                     })});
}

template <Reduction kReduction>
loop::ComputeRef lower_reduce(const LowerContext& cx) {
  return lower_rows(cx, kReduction, false);
}

loop::ComputeRef lower_mean(const LowerContext& cx) {
  return lower_rows(cx, Reduction::kSum, true);
}

// Carried values: shape arithmetic reduces lists of sizes, mostly to a product of dimensions.
template <Reduction kReduction>
Values reduced_values(const InferContext& cx, const TensorType& result) {
  auto values = values_of(cx, 0);
  if (!values || !contains(kInts, result.dtype)) return std::nullopt;
  if (cx.attr_ints("axes").empty()) return values;
  bool max_or_min = kReduction == Reduction::kMax || kReduction == Reduction::kMin;
  if (values->empty() && max_or_min) return std::nullopt;
  Dim out = kReduction == Reduction::kProd ? Dim(1) : max_or_min ? values->front() : Dim(0);
  try {
    for (const Dim& d : *values) {
      switch (kReduction) {
        case Reduction::kSum:
          out = out + d;
          break;
        case Reduction::kProd:
          out = out * d;
          break;
        case Reduction::kMax:
          out = max(out, d);
          break;
        case Reduction::kMin:
          out = min(out, d);
          break;
        default:
          return std::nullopt;
      }
    }
  } catch (const SizeError&) {  // the result would wrap
    return std::nullopt;
  }
  return fitting(result.dtype, {out});
}

Sample sample_reduce(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 4), axes;
  int64_t rank = static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < rank; ++i) {
    if (random.coin()) axes.push_back(random.coin() ? i : i - rank);
    if (shape[static_cast<size_t>(i)] == 0) shape[static_cast<size_t>(i)] = 1;
  }
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape)},
          attrs({{"axes", attr_ints(axes)}, {"keepdims", random.coin()}})};
}

// ---- argmax and argmin ----

TypeRef infer_arg(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  int64_t axis = cx.axis(cx.attr_int("axis"), x.rank);
  cx.require_less_equal(1, x.dims[static_cast<size_t>(axis)], cat("the axis has no elements"));
  return tensor_type(i64, Rows(dims_of(x), {axis}, cx.attr_bool("keepdims")).reduced_dims());
}

// The index of the greatest or least element; kFirst or kLast decides among equal ones.
template <Reduction kFirst, Reduction kLast>
loop::ComputeRef lower_arg(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef& x = cx.input(0);
  int64_t axis = info.axis(info.attr_int("axis"), info.tensor(0).rank);
  Reduction reduction = info.attr_bool("select_last") ? kLast : kFirst;
  Rows rows(dims_of(x), {axis}, info.attr_bool("keepdims"));
  return cx.compute(
      {rows.reduce(cx.output(), reduction, [&](const Indices& i) { return load(x, i); })});
}

Sample sample_arg(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  int64_t rank = static_cast<int64_t>(shape.size()), axis = random.between(0, rank - 1);
  if (shape[static_cast<size_t>(axis)] == 0) shape[static_cast<size_t>(axis)] = 2;
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape)},
          attrs({{"axis", random.coin() ? axis : axis - rank},
                 {"keepdims", random.coin()},
                 {"select_last", random.coin()}})};
}

struct Function {
  const char* name;
  DtypeSet dtypes;
  InferFn infer;
  LowerFn lower;
  ValueFn value;
  const char* summary;
};

const Function kFunctions[] = {
    {"reduce_sum", kNumbers, infer_reduce, lower_reduce<Reduction::kSum>,
     reduced_values<Reduction::kSum>, "the sum; 0 for no elements"},
    {"reduce_prod", kNumbers, infer_reduce, lower_reduce<Reduction::kProd>,
     reduced_values<Reduction::kProd>, "the product; 1 for no elements"},
    {"reduce_mean", kNumbers, infer_mean, lower_mean, nullptr,
     "the mean; for no elements NaN, or an error for integers"},
    {"reduce_max", kOrdered, infer_reduce, lower_reduce<Reduction::kMax>,
     reduced_values<Reduction::kMax>,
     "the greatest; NaN if any is; for no elements the least value of the dtype"},
    {"reduce_min", kOrdered, infer_reduce, lower_reduce<Reduction::kMin>,
     reduced_values<Reduction::kMin>,
     "the least; NaN if any is; for no elements the greatest value of the dtype"},
    {"reduce_and", kBools, infer_reduce, lower_reduce<Reduction::kAnd>, nullptr,
     "whether all are true"},
    {"reduce_or", kBools, infer_reduce, lower_reduce<Reduction::kOr>, nullptr,
     "whether any is true"},
};

}  // namespace

void register_reduce(OperatorTable& table) {
  for (const Function& f : kFunctions) {
    table.add(
        {.name = f.name,
         .kind = OpKind::kReduction,
         .operands = {{"x", f.dtypes}},
         .attrs = {{"axes", AttrKind::kInts, nullptr, "to reduce; an empty list reduces none"},
                   {"keepdims", AttrKind::kBool, "false", "keep reduced axes with size 1"}},
         .summary = f.summary,
         .infer = f.infer,
         .lower = f.lower,
         .value = f.value,
         .sample = sample_reduce,
         .layout = LayoutRule::kNamedAxes});
  }
  auto index_of = [&](const char* name, const char* summary, LowerFn lower) {
    table.add({.name = name,
               .kind = OpKind::kReduction,
               .operands = {{"x", kNumbers}},
               .attrs = {{"axis", AttrKind::kInt, "0", "reduced"},
                         {"keepdims", AttrKind::kBool, "false", "keep the axis with size 1"},
                         {"select_last", AttrKind::kBool, "false", "the last of equal ones"}},
               .summary = summary,
               .infer = infer_arg,
               .lower = lower,
               .sample = sample_arg,
               .layout = LayoutRule::kNamedAxes});
  };
  index_of("argmax", "the index (i64) of the greatest element; NaN is the greatest",
           lower_arg<Reduction::kArgMaxFirst, Reduction::kArgMaxLast>);
  index_of("argmin", "the index (i64) of the least element; NaN is the least",
           lower_arg<Reduction::kArgMinFirst, Reduction::kArgMinLast>);
}

}  // namespace tenon::graph

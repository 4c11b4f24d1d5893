// Reductions over given axes. Sums of f16 are kept in f32, those of a mean of integers in i64.
#include "graph/op/families.h"
#include "graph/op/rows.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

using loop::Reduction;

struct Function {
  const char* name;
  uint32_t dtypes;
  Reduction reduction;
  const char* summary;
};

const Function kFunctions[] = {
    {"reduce_sum", kNumbers, Reduction::kSum, "the sum; of nothing it is 0"},
    {"reduce_prod", kNumbers, Reduction::kProd, "the product; of nothing it is 1"},
    {"reduce_mean", kNumbers, Reduction::kSum,
     "the mean; of nothing it is NaN, and for integers an error"},
    {"reduce_max", kNumbers | kBools, Reduction::kMax,
     "the greatest; NaN if any is; of nothing the least value of the dtype"},
    {"reduce_min", kNumbers | kBools, Reduction::kMin,
     "the least; NaN if any is; of nothing the greatest value of the dtype"},
    {"reduce_and", kBools, Reduction::kAnd, "whether all are true"},
    {"reduce_or", kBools, Reduction::kOr, "whether any is true"},
};

const Function& function_of(const InferContext& cx) {
  for (const Function& f : kFunctions) {
    if (std::string_view(f.name) == std::string_view(cx.call().callee)) return f;
  }
  TENON_ASSERT(false, "no reduction ", cx.call().callee);
  return kFunctions[0];
}

bool is_mean(const Function& f) {
  return std::string_view(f.name) == "reduce_mean";
}

Rows rows_of(const InferContext& cx, const TensorType& x) {
  return Rows(dims_of(x), normalized_axes(cx, cx.attr_ints("axes"), x.rank),
              cx.attr_bool("keepdims"));
}

TypeRef infer_reduce(InferContext& cx) {
  const Function& f = function_of(cx);
  const TensorType& x = tensor_of(cx, 0, f.dtypes);
  Rows rows = rows_of(cx, x);
  if (is_mean(f) && contains(kInts, x.dtype)) {
    cx.require_less_equal(1, rows.count(), "the mean of no integers");
  }
  return tensor_type(x.dtype, rows.reduced_dims());
}

loop::ComputeRef lower_reduce(const LowerContext& cx) {
  const Function& f = function_of(cx.info());
  const BufferRef &x = cx.input(0), &y = cx.output();
  Rows rows = rows_of(cx.info(), cx.info().tensor(0));
  Reduction reduction = f.reduction;
  // The greatest of booleans is their disjunction.
  if (x->dtype.is_bool() && reduction == Reduction::kMax) reduction = Reduction::kOr;
  if (x->dtype.is_bool() && reduction == Reduction::kMin) reduction = Reduction::kAnd;

  if (rows.extents().empty()) {  // each result is one element
    return cx.compute({map_stage(y, [&](const Indices& i) { return load(x, i); })});
  }
  bool sums = reduction == Reduction::kSum || reduction == Reduction::kProd;
  DataType dtype = sums ? wide(x->dtype) : x->dtype;
  if (is_mean(f) && contains(kInts, dtype) && dtype != u64) dtype = i64;
  auto body = [&](const Indices& i) { return as(dtype, load(x, i)); };
  if (!is_mean(f)) return cx.compute({rows.reduce(y, reduction, body)});

  BufferRef sum = rows.buffer("sum", dtype);
  Scalar count = as(dtype, size(rows.count()));
  return cx.compute({rows.reduce(sum, reduction, body), map_stage(y, [&](const Indices& i) {
                       return as(y->dtype, load(sum, i) / count);
                     })});
}

// Shape arithmetic reduces lists of sizes to one: a product of dimensions, mostly.
Values reduced_values(const InferContext& cx, const TensorType& result) {
  const Function& f = function_of(cx);
  auto values = values_of(cx, 0);
  if (!values || is_mean(f) || !contains(kInts, result.dtype)) return std::nullopt;
  if (cx.attr_ints("axes").empty()) return values;
  bool max_or_min = f.reduction == Reduction::kMax || f.reduction == Reduction::kMin;
  if (values->empty() && max_or_min) return std::nullopt;
  Dim out = f.reduction == Reduction::kProd ? Dim(1) : max_or_min ? values->front() : Dim(0);
  try {
    for (const Dim& d : *values) {
      switch (f.reduction) {
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
  } catch (const Error&) {  // past 64 bits the result wraps
    return std::nullopt;
  }
  return fitting(result.dtype, {out});
}

template <uint32_t kSet>
Sample sample_reduce(uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 4), axes;
  int64_t rank = static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < rank; ++i) {
    if (random.coin()) axes.push_back(random.coin() ? i : i - rank);
    if (shape[static_cast<size_t>(i)] == 0) shape[static_cast<size_t>(i)] = 1;
  }
  return {{sample_tensor(random.dtype(kSet), shape)},
          attrs({{"axes", attr_ints(axes)}, {"keepdims", random.coin()}})};
}

// ---- argmax and argmin ----

TypeRef infer_arg(InferContext& cx) {
  const TensorType& x = tensor_of(cx, 0, kNumbers);
  int64_t axis = cx.axis(cx.attr_int("axis"), x.rank);
  cx.require_less_equal(1, x.dims[static_cast<size_t>(axis)], cat("the axis has no elements"));
  return tensor_type(i64, Rows(dims_of(x), {axis}, cx.attr_bool("keepdims")).reduced_dims());
}

loop::ComputeRef lower_arg(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef& x = cx.input(0);
  int64_t axis = info.axis(info.attr_int("axis"), info.tensor(0).rank);
  bool last = info.attr_bool("select_last");
  bool greatest = std::string_view(info.call().callee) == "argmax";
  Reduction reduction = greatest ? (last ? Reduction::kArgMaxLast : Reduction::kArgMaxFirst)
                                 : (last ? Reduction::kArgMinLast : Reduction::kArgMinFirst);
  Rows rows(dims_of(x), {axis}, info.attr_bool("keepdims"));
  return cx.compute(
      {rows.reduce(cx.output(), reduction, [&](const Indices& i) { return load(x, i); })});
}

Sample sample_arg(uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  int64_t rank = static_cast<int64_t>(shape.size()), axis = random.between(0, rank - 1);
  if (shape[static_cast<size_t>(axis)] == 0) shape[static_cast<size_t>(axis)] = 2;
  return {{sample_tensor(random.dtype(kNumbers), shape)},
          attrs({{"axis", random.coin() ? axis : axis - rank},
                 {"keepdims", random.coin()},
                 {"select_last", random.coin()}})};
}

}  // namespace

void register_reduce(OperatorTable& table) {
  for (const Function& f : kFunctions) {
    table.add({.name = f.name,
               .kind = OpKind::kReduction,
               .operands = {{"x"}},
               .attrs = {{"axes", AttrKind::kInts, nullptr, "reduced; none of an empty list"},
                         {"keepdims", AttrKind::kBool, "false", "reduced axes stay, of size 1"}},
               .summary = f.summary,
               .infer = infer_reduce,
               .lower = lower_reduce,
               .value = reduced_values,
               .sample = f.dtypes == kBools ? sample_reduce<kBools> : sample_reduce<kNumbers>,
               .layout = LayoutRule::kNamedAxes});
  }
  for (const char* name : {"argmax", "argmin"}) {
    table.add({.name = name,
               .kind = OpKind::kReduction,
               .operands = {{"x"}},
               .attrs = {{"axis", AttrKind::kInt, "0", "reduced"},
                         {"keepdims", AttrKind::kBool, "false", "the axis stays, of size 1"},
                         {"select_last", AttrKind::kBool, "false", "of equal ones, the last"}},
               .summary = std::string_view(name) == "argmax"
                              ? "the index (i64) of the greatest element; NaN is the greatest"
                              : "the index (i64) of the least element; NaN is the least",
               .infer = infer_arg,
               .lower = lower_arg,
               .sample = sample_arg,
               .layout = LayoutRule::kNamedAxes});
  }
}

}  // namespace tenon::graph

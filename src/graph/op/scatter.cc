// Operators that write updates into a copy of x at indices that are data. Indices are as in gather.
// Several updates of one element are applied in row-major order.
#include "graph/op/families.h"
#include "graph/op/rule.h"
#include "graph/op/stages.h"

namespace tenon::graph {
namespace {

using loop::Reduction;

Reduction reduction_of(const InferContext& cx) {
  static const std::pair<const char*, Reduction> kNames[] = {{"none", Reduction::kNone},
                                                             {"add", Reduction::kSum},
                                                             {"mul", Reduction::kProd},
                                                             {"max", Reduction::kMax},
                                                             {"min", Reduction::kMin}};
  String name = cx.attr_string("reduction");
  for (const auto& [text, reduction] : kNames) {
    if (std::string_view(name) == text) return reduction;
  }
  cx.fail(cat("'reduction' is \"", name, "\", expected none, add, mul, max or min"));
}

void require_operands(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  require_same_dtype(cx, 2, 0);
  if (reduction_of(cx) != Reduction::kNone && !contains(kNumbers | kNarrow, x.dtype)) {
    cx.fail(
        cat("'reduction' is \"", cx.attr_string("reduction"), "\", but 'x' is ", to_text(x.dtype)));
  }
}

Scalar checked_load(const BufferRef& indices, const Indices& at, const Dim& extent) {
  return loop::checked_index(as(i64, load(indices, at)), extent);
}

// ---- scatter_elements ----

TypeRef infer_scatter_elements(InferContext& cx) {
  require_operands(cx);
  const TensorType &x = cx.tensor(0), &indices = cx.tensor(1), &updates = cx.tensor(2);
  size_t axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
  for (size_t i : {1, 2}) require_rank(cx, i, x.rank);
  for (size_t i = 0; i < x.dims.size(); ++i) {
    cx.require_equal(indices.dims[i], updates.dims[i],
                     cat("axis ", i, " of 'indices' and of 'updates'"));
    if (i == axis) continue;
    cx.require_less_equal(indices.dims[i], x.dims[i],
                          cat("axis ", i, " of 'indices' lies within 'x'"));
  }
  return tensor_type(x.dtype, dims_of(x));
}

loop::ComputeRef lower_scatter_elements(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &indices = cx.input(1), &updates = cx.input(2);
  size_t axis =
      static_cast<size_t>(cx.info().axis(cx.info().attr_int("axis"), cx.info().tensor(0).rank));
  std::vector<Dim> space = dims_of(indices);
  return cx.compute({scatter_stage(
      cx.output(), [&](const Indices& i) { return load(x, i); }, reduction_of(cx.info()), space,
      [&](const Indices& p) {
        Update u{p, load_within(updates, p, space)};
        for (size_t k = 0; k < p.size(); ++k) u.indices[k] = within(p[k], space[k], x->shape[k]);
        u.indices[axis] = checked_load(indices, p, x->shape[axis]);
        return u;
      })});
}

Sample sample_scatter_elements(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4), picked;
  int64_t rank = static_cast<int64_t>(shape.size()), axis = random.between(0, rank - 1);
  shape[static_cast<size_t>(axis)] = random.between(1, 4);
  for (int64_t n : shape) picked.push_back(random.between(0, n));
  picked[static_cast<size_t>(axis)] = random.between(0, 6);
  DataType dtype = random.dtype(kNumbers);
  return {{sample_tensor(dtype, shape), sample_tensor(random.coin() ? i64 : i32, picked),
           sample_tensor(dtype, picked)},
          attrs({{"axis", random.coin() ? axis : axis - rank},
                 {"reduction", random.pick<String>({"none", "add", "mul", "max", "min"})}})};
}

// ---- scatter_nd ----

size_t tuple_length(const InferContext& cx) {
  const TensorType& indices = cx.tensor(1);
  if (indices.rank == 0) cx.fail(cat(cx.operand_text(1), " has rank 0, expected at least 1"));
  auto length = indices.dims[static_cast<size_t>(indices.rank - 1)].as_const();
  if (!length) cx.fail(cat("the last axis of ", cx.operand_text(1), " must be a number"));
  if (*length < 0 || *length > cx.tensor(0).rank) {
    cx.fail(
        cat("'indices' has ", *length, " entries per index, but 'x' has rank ", cx.tensor(0).rank));
  }
  return static_cast<size_t>(*length);
}

// The shape of the updates: one slice of x per index tuple.
std::vector<Dim> update_space(const InferContext& cx) {
  const TensorType &x = cx.tensor(0), &indices = cx.tensor(1);
  std::vector<Dim> space(indices.dims.begin(), indices.dims.end() - 1);
  space.insert(space.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(tuple_length(cx)),
               x.dims.end());
  return space;
}

TypeRef infer_scatter_nd(InferContext& cx) {
  require_operands(cx);
  tuple_length(cx);
  std::vector<Dim> space = update_space(cx);
  require_rank(cx, 2, static_cast<int64_t>(space.size()));
  for (size_t i = 0; i < space.size(); ++i) {
    cx.require_equal(cx.tensor(2).dims[i], space[i],
                     cat("axis ", i, " of 'updates' and of the slices that 'indices' selects"));
  }
  return tensor_type(cx.tensor(0).dtype, dims_of(cx.tensor(0)));
}

loop::ComputeRef lower_scatter_nd(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &indices = cx.input(1), &updates = cx.input(2);
  size_t length = tuple_length(cx.info()), outer = indices->shape.size() - 1;
  std::vector<Dim> space = update_space(cx.info());
  return cx.compute({scatter_stage(
      cx.output(), [&](const Indices& i) { return load(x, i); }, reduction_of(cx.info()), space,
      [&](const Indices& p) {
        auto rest = p.begin() + static_cast<std::ptrdiff_t>(outer);
        Indices tuple(p.begin(), rest);
        tuple.push_back(nullptr);
        Update u{{}, load_within(updates, p, space)};
        for (size_t k = 0; k < length; ++k) {
          tuple.back() = index(static_cast<int64_t>(k));
          u.indices.push_back(checked_load(indices, tuple, x->shape[k]));
        }
        u.indices.insert(u.indices.end(), rest, p.end());
        return u;
      })});
}

Sample sample_scatter_nd(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  for (int64_t& n : shape) n = std::max<int64_t>(n, 1);
  int64_t length = random.between(1, static_cast<int64_t>(shape.size()));
  std::vector<int64_t> indices, updates;
  for (int64_t i = random.between(0, 2); i > 0; --i) indices.push_back(random.between(0, 3));
  updates = indices;
  indices.push_back(length);
  updates.insert(updates.end(), shape.begin() + length, shape.end());
  DataType dtype = random.dtype(kNumbers);
  return {{sample_tensor(dtype, shape), sample_tensor(random.coin() ? i64 : i32, indices),
           sample_tensor(dtype, updates)},
          attrs({{"reduction", random.pick<String>({"none", "add", "mul", "max", "min"})}})};
}

const AttrSpec kReduction = {"reduction", AttrKind::kString, "\"none\"",
                             "with what is there: none (replaces), add, mul, max, min"};

}  // namespace

void register_scatter(OperatorTable& table) {
  table.add({.name = "scatter_elements",
             .kind = OpKind::kMovement,
             .operands = {{"x", kData}, {"indices", kIndices}, {"updates", kData}},
             .attrs = {{"axis", AttrKind::kInt, "0", "that the indices are of"}, kReduction},
             .summary = "x with one element updated per index",
             .infer = infer_scatter_elements,
             .lower = lower_scatter_elements,
             .sample = sample_scatter_elements});
  table.add({.name = "scatter_nd",
             .kind = OpKind::kMovement,
             .operands = {{"x", kData}, {"indices", kIndices}, {"updates", kData}},
             .attrs = {kReduction},
             .summary = "x with one slice updated per index tuple, the last axis of the indices",
             .infer = infer_scatter_nd,
             .lower = lower_scatter_nd,
             .sample = sample_scatter_nd});
}

}  // namespace tenon::graph

// Packs the right operand of sums of products, so that a panel of columns is contiguous in memory:
//
//   x[k..., n]  ->  y[ceil(n / width), k..., width]      y[p, k..., c] = x[k..., p*width + c]
//
// The columns that the last panel lacks are zeros. For a constant x, `pack` runs at compile time.
// `unpack` is the inverse and costs only index arithmetic inside the kernel that reads it.
//
// `unpack_bits` reads the numbers of 2 or 4 bits that bytes hold, the lowest bits first:
//
//   x[d, k...]  ->  y[d * 8 / bits, k...]      y[i * 8 / bits + j, k...] = bits of x[i, k...]
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

int64_t width_of(const InferContext& cx) {
  const int64_t width = cx.attr_int("width");
  if (width < 1) cx.fail(cat("'width' is ", width, ", expected at least 1"));
  return width;
}

TypeRef infer_pack(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  const int64_t width = width_of(cx);
  if (x.rank == 0) cx.fail("operand 0 ('x') has rank 0, expected at least 1");
  std::vector<Dim> dims = dims_of(x);
  const Dim panels = ceildiv(dims.back(), Dim(width));
  dims.pop_back();
  dims.insert(dims.begin(), panels);
  dims.push_back(Dim(width));
  return tensor_type(x.dtype, dims);
}

loop::ComputeRef lower_pack(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  return cx.compute({map_stage(y, [&](const Indices& i) {
    const Scalar column = i.front() * size(y->shape.back()) + i.back();
    Indices at(i.begin() + 1, i.end() - 1);
    const Scalar columns = size(x->shape.back());
    at.push_back(min_of(column, columns - index(1)));
    return select(lt(column, columns), load(x, at), number(x->dtype, 0));
  })});
}

Sample sample_pack(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  return {{sample_tensor(random.dtype(kAll), shape)},
          attrs({{"width", Any(random.between(1, 3))}})};
}

TypeRef infer_unpack(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (x.rank < 2) cx.fail(cat("operand 0 ('x') has rank ", x.rank, ", expected at least 2"));
  std::vector<Dim> dims = dims_of(x);
  const Dim columns = cx.attr_dim("columns");
  cx.require_less_equal(0, columns, "the number of columns is not negative");
  cx.require_less_equal(columns, dims.front() * dims.back(), "'columns' and those of all panels");
  dims.erase(dims.begin());
  dims.back() = columns;
  return tensor_type(x.dtype, dims);
}

loop::ComputeRef lower_unpack(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  return cx.compute({map_stage(y, [&](const Indices& i) {
    const Scalar width = size(x->shape.back());
    const Scalar column = within(i.back(), y->shape.back(), x->shape.front() * x->shape.back());
    Indices at(i.begin(), i.end() - 1);
    at.insert(at.begin(), floor_div(column, width));
    at.push_back(modulo(column, width));
    return load(x, at);
  })});
}

Sample sample_unpack(const Operator&, uint64_t seed) {
  Random random(seed);
  const std::vector<int64_t> shape = random.shape(2, 5);
  const Dim columns(random.between(0, shape.front() * shape.back()));
  return {{sample_tensor(random.dtype(kAll), shape)}, attrs({{"columns", Any(columns.ref())}})};
}

int64_t bits_of(const InferContext& cx) {
  const int64_t bits = cx.attr_int("bits");
  if (bits != 2 && bits != 4) cx.fail(cat("'bits' is ", bits, ", expected 2 or 4"));
  return bits;
}

TypeRef infer_unpack_bits(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  const int64_t each = 8 / bits_of(cx);
  if (x.rank == 0) cx.fail(cat(cx.operand_text(0), " has rank 0, expected at least 1"));
  std::vector<Dim> dims = dims_of(x);
  dims[0] = dims[0] * each;
  return tensor_type(u8, dims);
}

loop::ComputeRef lower_unpack_bits(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  const int64_t bits = bits_of(cx.info()), each = 8 / bits;
  return cx.compute({map_stage(y, [&](const Indices& i) {
    Indices at = i;
    at[0] = floor_div(i[0], index(each));
    const Scalar shift = as(i32, modulo(i[0], index(each)) * index(bits));
    const Scalar shifted = binary(BinaryOp::kShr, as(i32, load(x, at)), shift);
    return as(u8, both(shifted, literal_int(i32, (1 << bits) - 1)));
  })});
}

Sample sample_unpack_bits(const Operator&, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(u8, random.shape(1, 3))},
          attrs({{"bits", Any(random.coin() ? int64_t{2} : int64_t{4})}})};
}

}  // namespace

void register_pack(OperatorTable& table) {
  table.add({.name = "pack",
             .kind = OpKind::kMovement,
             .operands = {{"x", kAll}},
             .attrs = {{"width", AttrKind::kInt, nullptr, "columns of a panel"}},
             .summary = "the last axis in panels, the last one filled with zeros: [k..., n] to "
                        "[ceil(n/width), k..., width]",
             .infer = infer_pack,
             .lower = lower_pack,
             .sample = sample_pack});
  table.add({.name = "unpack",
             .kind = OpKind::kMovement,
             .operands = {{"x", kAll}},
             .attrs = {{"columns", AttrKind::kDim, nullptr, "the size of the result's last axis"}},
             .summary = "undoes pack: [ceil(n/width), k..., width] to [k..., n]",
             .infer = infer_unpack,
             .lower = lower_unpack,
             .sample = sample_unpack,
             .read_through = true});
  table.add({.name = "unpack_bits",
             .kind = OpKind::kMovement,
             .operands = {{"x", only(u8)}},
             .attrs = {{"bits", AttrKind::kInt, nullptr, "of a number: 2 or 4"}},
             .summary =
                 "the numbers in bytes along the first axis, the lowest bits first: [d, k...] "
                 "to [d * 8/bits, k...]",
             .infer = infer_unpack_bits,
             .lower = lower_unpack_bits,
             .sample = sample_unpack_bits,
             .read_through = true});
}

}  // namespace tenon::graph

// Algorithms on numbers that aren't loop nests: Fourier transforms and determinants. Packed
// functions of src/library/algorithms compute them.
#include "graph/op/families.h"
#include "graph/op/packed.h"

namespace tenon::graph {
namespace {

TypeRef infer_dft(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (x.rank < 2) cx.fail(cat(cx.operand_text(0), " has rank ", x.rank, ", expected at least 2"));
  const auto axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
  std::vector<Dim> dims = dims_of(x);
  if (axis + 1 == dims.size()) cx.fail("'axis' is the last, which has the parts of numbers");
  const bool inverse = cx.attr_bool("inverse"), onesided = cx.attr_bool("onesided");
  const Dim length = cx.attr_dim("length");
  cx.require_less_equal(1, length, "'length' is at least 1");
  cx.require_less_equal(1, dims.back(), "parts of a number");
  cx.require_less_equal(dims.back(), 2, "parts of a number");
  dims[axis] = onesided && !inverse ? floordiv(length, 2) + 1 : length;
  dims.back() = inverse && onesided ? 1 : 2;
  return tensor_type(x.dtype, dims);
}

Sample sample_dft(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 3);
  const int64_t axis = random.between(0, static_cast<int64_t>(shape.size()) - 1);
  shape.push_back(random.between(1, 2));
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape)},
          attrs({{"length", random.between(1, 7)},
                 {"axis", axis},
                 {"inverse", random.coin()},
                 {"onesided", random.coin()}})};
}

TypeRef infer_det(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (x.rank < 2) cx.fail(cat(cx.operand_text(0), " has rank ", x.rank, ", expected at least 2"));
  std::vector<Dim> dims = dims_of(x);
  cx.require_equal(dims[dims.size() - 2], dims.back(), "rows and columns");
  dims.resize(dims.size() - 2);
  return tensor_type(x.dtype, dims);
}

Sample sample_det(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 2);
  const int64_t n = random.between(0, 4);
  shape.insert(shape.end(), {n, n});
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape)}, {}};
}

}  // namespace

void register_transform(OperatorTable& table) {
  table.add(
      packed("dft", "tenon.dft", {{"x", only(f32) | only(f64)}},
             {{"length", AttrKind::kDim, nullptr, "to which signals are cut or extended by 0"},
              {"axis", AttrKind::kInt, "-2", "of the signals; not the last"},
              {"inverse", AttrKind::kBool, "false", "the inverse, divided by the length"},
              {"onesided", AttrKind::kBool, "false",
               "of the complex side, only the first length / 2 + 1 elements; the other side "
               "is real"}},
             "the discrete Fourier transform of real [..., 1] or complex numbers [..., 2]",
             infer_dft, sample_dft));
  table.add(packed("det", "tenon.det", {{"x", only(f32) | only(f64)}}, {},
                   "the determinants of matrices [..., n, n]", infer_det, sample_det));
}

}  // namespace tenon::graph

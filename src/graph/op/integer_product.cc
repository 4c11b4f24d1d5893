#include "graph/op/integer_product.h"

#include <algorithm>

namespace tenon::graph {

void require_zero_point(InferContext& cx, size_t operand, size_t zero) {
  if (!cx.has(zero)) return;
  require_same_dtype(cx, zero, operand);
  const TensorType &x = cx.tensor(operand), &z = cx.tensor(zero);
  if (z.rank > x.rank) {
    cx.fail(cat(cx.operand_text(zero), " has rank ", z.rank, ", expected at most ", x.rank,
                ", that of ", cx.operand_text(operand)));
  }
  const std::vector<Dim> joined = cx.broadcast_shapes({dims_of(x), dims_of(z)});
  for (size_t i = 0; i < joined.size(); ++i) {
    cx.require_equal(joined[i], x.dims[i],
                     cat("axis ", i, " of ", cx.operand_text(operand), " with ",
                         cx.operand_text(zero), " and without"));
  }
}

Scalar centred(const LowerContext& cx, size_t operand, size_t zero, const Indices& at) {
  const BufferRef& x = cx.input(operand);
  Scalar element = as(i32, load(x, at));
  if (!cx.info().has(zero)) return element;
  const BufferRef& z = cx.input(zero);
  Indices place = loop::broadcast_indices(z, at, dims_of(x));
  const size_t skipped = x->shape.size() - z->shape.size();
  for (size_t i = 0; i < place.size(); ++i) {
    const Dim& size = z->shape[i];
    if (size.is_const(1) || proves_equal(size, x->shape[skipped + i])) continue;
    place[i] = loop::checked_index(place[i], size);
  }
  return element - as(i32, load(z, place));
}

Scalar centred(const LowerContext& cx, const Scalar& x, size_t zero) {
  if (!cx.info().has(zero)) return as(i32, x);
  return as(i32, x) - as(i32, only_element(cx.input(zero)));
}

Scalar only_element(const BufferRef& b) {
  return load(b, Indices(b->shape.size(), index(0)));
}

TypeRef sample_zero_point(Random& random, DataType dtype, const std::vector<int64_t>& shape) {
  if (random.coin()) return unit_type();
  std::vector<int64_t> zero;
  if (random.coin()) {
    const auto axis =
        static_cast<size_t>(random.between(0, static_cast<int64_t>(shape.size()) - 1));
    zero.assign(shape.size() - axis, 1);
    zero[0] = shape[axis];
  }
  return sample_tensor(dtype, zero);
}

}  // namespace tenon::graph

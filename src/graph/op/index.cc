#include "graph/op/index.h"

namespace tenon::graph {

Scalar size(const Dim& d) {
  auto value = d.as_const();
  return value ? index(*value) : loop::dim_value(d);
}

Scalar as(DataType dtype, const Scalar& a) {
  return a->dtype == dtype ? a : loop::cast(dtype, a);
}

Scalar number(DataType dtype, double value) {
  return dtype.is_float() ? literal(dtype, value) : literal_int(dtype, static_cast<int64_t>(value));
}

Scalar window(const Dim& start, const Dim& length, const Dim& extent) {
  if (proves_nonnegative(start) && proves_less_equal(start + length, extent)) return size(start);
  // Checks the start against the number of possible starts. (A negative start counts from the end,
  // so it is in range too; the `check` binding refuses it.)
  return loop::checked_index(size(start), extent - length + 1);
}

Scalar within(const Scalar& i, const Dim& space, const Dim& extent) {
  if (proves_less_equal(space, extent)) return i;
  return i + loop::checked_index(index(0), extent - space + 1);
}

Scalar load_within(const BufferRef& b, const Indices& indices, const std::vector<Dim>& space) {
  Indices guarded;
  for (size_t i = 0; i < indices.size(); ++i) {
    guarded.push_back(within(indices[i], space[i], b->shape[i]));
  }
  return load(b, guarded);
}

Scalar in_range(const Scalar& i, const Dim& extent) {
  return both(le(index(0), i), lt(i, size(extent)));
}

Scalar clamp(const Scalar& i, const Dim& extent) {
  return max_of(min_of(i, size(extent - 1)), index(0));
}

Scalar flatten(const Indices& indices, const std::vector<Dim>& dims) {
  Scalar offset = index(0);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (dims[i].is_const(1)) continue;
    offset = i == 0 ? indices[0] : offset * size(dims[i]) + indices[i];
  }
  return offset;
}

Indices unflatten(const Scalar& offset, const std::vector<Dim>& dims) {
  Indices out(dims.size(), index(0));
  // The outermost dimension that is not 1 takes the remaining quotient and needs no modulo.
  size_t first = 0;
  while (first < dims.size() && dims[first].is_const(1)) ++first;
  Scalar rest = offset;
  for (size_t i = dims.size(); i-- > first;) {
    if (dims[i].is_const(1)) continue;
    if (i == first) {
      out[i] = rest;
    } else {
      out[i] = modulo(rest, size(dims[i]));
      rest = floor_div(rest, size(dims[i]));
    }
  }
  return out;
}

std::vector<Dim> dims_of(const BufferRef& b) {
  return std::vector<Dim>(b->shape.begin(), b->shape.end());
}

Scalar load(const BufferRef& b, const Indices& indices) {
  return loop::load(b, Array<Scalar>(indices));
}

DataType wide(DataType dtype) {
  return dtype.is_narrow_float() ? f32 : dtype;
}

}  // namespace tenon::graph

// Operators that create tensors: constants, fills, ranges.

#include <cmath>

#include "import/onnx/node_context.h"
#include "import/onnx/sparse_tensor.h"

namespace tenon::onnx {

namespace {

using graph::attr_dims;
using graph::attrs;

Operands constant(NodeContext& cx) {
  if (Tensor t = cx.attr_tensor("value")) return {graph::constant(t)};
  if (cx.has_attr("value_float")) return {cx.scalar(f32, cx.attr_float("value_float", 0))};
  if (cx.has_attr("value_int")) {
    int64_t v = cx.attr_int("value_int");
    return {graph::constant(
        Tensor::copy_of(std::span<const int64_t>(), i64, std::span<const int64_t>(&v, 1)))};
  }
  if (cx.has_attr("value_floats")) {
    std::vector<double> v = cx.attr_floats("value_floats");
    return {graph::constant(make_tensor(f32, {static_cast<int64_t>(v.size())}, v))};
  }
  if (cx.has_attr("value_ints")) return {cx.ints_tensor(cx.attr_ints("value_ints"))};
  if (cx.has_attr("value_string")) return {cx.string(cx.attr_string("value_string", ""))};
  if (cx.has_attr("value_strings")) return {cx.strings_tensor(cx.attr_strings("value_strings"))};
  if (const SparseData* sparse = cx.attr_sparse("sparse_value")) {
    return {dense(cx.b, *sparse, "sparse_value")};
  }
  cx.invalid("no attribute that holds a value",
             "one of value, sparse_value, value_int, value_ints, value_float, value_floats, "
             "value_string and value_strings");
}

Operands constant_of_shape(NodeContext& cx) {
  Tensor value = cx.attr_tensor("value");
  if (value && value.count() != 1)
    cx.invalid(cat("a value of ", value.count(), " elements"), "one");
  Operand fill = value ? graph::constant(value) : cx.scalar(f32, 0);
  return {cx.op("full", {fill}, attrs({{"shape", attr_dims(cx.elements(cx.in(0)))}}))};
}

Operands range(NodeContext& cx) {
  Operand start = cx.reshape(cx.in(0), {}), limit = cx.reshape(cx.in(1), {}),
          delta = cx.reshape(cx.in(2), {});
  std::optional<Dim> count;
  auto a = cx.values(start), b = cx.values(limit), d = cx.values(delta);
  auto known_step = a && b && d ? (*d)[0].as_const() : std::nullopt;
  if (known_step && *known_step != INT64_MIN) {  // INT64_MIN can't be negated
    int64_t step = *known_step;
    if (step == 0) cx.invalid("a delta of 0", "another number");
    Dim span = step > 0 ? (*b)[0] - (*a)[0] : (*a)[0] - (*b)[0];
    Dim n = ceildiv(span, step > 0 ? step : -step);
    count = proves_nonnegative(n) ? n : max(n, 0);
  } else if (cx.dtype(start).is_float()) {
    auto x = cx.number(start), y = cx.number(limit), z = cx.number(delta);
    if (x && y && z) {
      double n = std::ceil((*y - *x) / *z);
      if (!(n <= 9e15)) cx.invalid(cat("a range of ", n, " elements"), "at most 9e15");
      count = n > 0 ? static_cast<int64_t>(n) : 0;
    }
  }
  if (!count) {
    Operand n = cx.op("range_count", {start, limit, delta});
    count = cx.elements(n).at(0);
  }
  return {cx.op("range", {start, delta}, attrs({{"count", *count}}))};
}

Operands eye_like(NodeContext& cx) {
  Dims dims = cx.dims(0);
  if (dims.size() != 2) cx.invalid(cat("an operand of rank ", dims.size()), "a matrix");
  return {cx.op("eye", {},
                attrs({{"shape", attr_dims(dims)},
                       {"k", cx.attr_int("k", 0)},
                       {"dtype", Any(cx.attr_dtype("dtype", cx.dtype(0)))}}))};
}

// 2 pi i / n for i < size, in double precision; n is size, or size - 1 if symmetric.
struct Window {
  Operand angle;
  DataType dtype;
};

Window window(NodeContext& cx) {
  DataType dtype = cx.attr_dtype("output_datatype", f32);
  bool periodic = cx.attr_bool("periodic", true);
  Dims given = cx.elements(cx.in(0));
  if (given.size() != 1) cx.invalid(cat("a size of ", given.size(), " elements"), "one");
  Dim size = given[0];
  Operand i = cx.op("range", {cx.scalar(f64, 0), cx.scalar(f64, 1)}, attrs({{"count", size}}));
  Operand n = cx.cast(cx.reshape(cx.in(0), {}), f64);
  if (!periodic) n = cx.sub(n, cx.scalar(f64, 1));
  return {cx.div(cx.mul(i, cx.scalar(f64, 2 * M_PI)), n), dtype};
}

// a0 - a1 cos(x) + a2 cos(2 x)
Operands cosine_window(NodeContext& cx, double a0, double a1, double a2) {
  Window w = window(cx);
  Operand y = cx.sub(cx.scalar(f64, a0), cx.mul(cx.op("cos", {w.angle}), cx.scalar(f64, a1)));
  if (a2 != 0) {
    Operand twice = cx.mul(w.angle, cx.scalar(f64, 2));
    y = cx.add(y, cx.mul(cx.op("cos", {twice}), cx.scalar(f64, a2)));
  }
  return {cx.cast(y, w.dtype)};
}

Operands hann(NodeContext& cx) {
  return cosine_window(cx, 0.5, 0.5, 0);
}
Operands hamming(NodeContext& cx) {
  return cosine_window(cx, 25.0 / 46, 21.0 / 46, 0);
}
Operands blackman(NodeContext& cx) {
  return cosine_window(cx, 0.42, 0.5, 0.08);
}

}  // namespace

void register_create(OpTable& t) {
  t.add("Constant", 1, constant);
  t.add("ConstantOfShape", 9, constant_of_shape);
  t.add("Range", 11, range);
  t.add("EyeLike", 9, eye_like);
  t.add("HannWindow", 17, hann);
  t.add("HammingWindow", 17, hamming);
  t.add("BlackmanWindow", 17, blackman);
}

}  // namespace tenon::onnx

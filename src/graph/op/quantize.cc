// Linear quantisation, y = saturate(round(x / scale) + zero_point), and its inverse. Scale and zero
// point are per tensor, per index of an axis, or per block of an axis.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"
#include "object/narrow_float.h"

namespace tenon::graph {
namespace {

enum class Granularity { kTensor, kAxis, kBlock };

Granularity granularity_of(const InferContext& cx) {
  if (cx.attr_int("block_size") > 0) return Granularity::kBlock;
  const TensorType& scale = cx.tensor(1);
  if (scale.rank == 0) return Granularity::kTensor;
  if (scale.rank == 1 && scale.dims[0].is_const(1)) return Granularity::kTensor;
  return Granularity::kAxis;
}

// Checks that scale and zero point fit x.
void require_parameters(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  const TensorType& scale = cx.tensor(1);
  int64_t block = cx.attr_int("block_size");
  if (block < 0) cx.fail(cat("'block_size' is ", block, ", expected at least 0"));
  if (cx.has(2)) {
    require_rank(cx, 2, scale.rank);
    for (size_t i = 0; i < scale.dims.size(); ++i) {
      cx.require_equal(scale.dims[i], cx.tensor(2).dims[i],
                       cat("axis ", i, " of 'scale' and of 'zero_point'"));
    }
  }
  switch (granularity_of(cx)) {
    case Granularity::kTensor:
      break;
    case Granularity::kAxis: {
      require_rank(cx, 1, 1);
      size_t axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
      cx.require_equal(scale.dims[0], x.dims[axis],
                       cat("size of 'scale' and axis ", axis, " of 'x'"));
      break;
    }
    case Granularity::kBlock: {
      require_rank(cx, 1, x.rank);
      size_t axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
      for (size_t i = 0; i < x.dims.size(); ++i) {
        cx.require_equal(scale.dims[i], i == axis ? ceildiv(x.dims[i], block) : x.dims[i],
                         cat("axis ", i, " of 'scale' and of the blocks of 'x'"));
      }
      break;
    }
  }
}

// Loads a parameter for the element `i` of x.
Scalar parameter(const LowerContext& cx, size_t operand, const Indices& i) {
  const InferContext& info = cx.info();
  const BufferRef &x = cx.input(0), &p = cx.input(operand);
  Granularity granularity = granularity_of(info);
  if (granularity == Granularity::kTensor) return load(p, Indices(p->shape.size(), index(0)));
  size_t axis = static_cast<size_t>(info.axis(info.attr_int("axis"), info.tensor(0).rank));
  if (granularity == Granularity::kAxis) return load_within(p, {i[axis]}, {x->shape[axis]});
  int64_t block = info.attr_int("block_size");
  Indices at = i;
  std::vector<Dim> space = dims_of(x);
  at[axis] = floor_div(i[axis], index(block));
  space[axis] = ceildiv(x->shape[axis], block);
  return load_within(p, at, space);
}

DtypeSet quantized_dtypes() {
  return only(i8) | only(i16) | only(u8) | only(u16) | kNarrow;
}

// The greatest number of a float of at most 8 bits.
double greatest_of(DataType dtype) {
  return narrow_value(dtype, static_cast<uint16_t>(format_of(dtype).end_of_numbers() - 1));
}

// ---- quantize_linear ----

TypeRef infer_quantize(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  DataType to = cx.has(2) ? cx.tensor(2).dtype : cx.attr_dtype("dtype");
  if (!contains(quantized_dtypes(), to)) {
    cx.fail(cat("the result would be ", to_text(to), ", expected ", describe(quantized_dtypes())));
  }
  require_parameters(cx);
  return tensor_type(to, dims_of(x));
}

loop::ComputeRef lower_quantize(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  DataType dtype = x->dtype == f64 || cx.input(1)->dtype == f64 ? f64 : f32;
  return cx.compute({map_stage(y, [&](const Indices& i) {
    Scalar q = as(dtype, load(x, i)) / as(dtype, parameter(cx, 1, i));
    if (!y->dtype.is_float()) q = unary(UnaryOp::kRoundEven, q);
    if (cx.info().has(2)) q = q + as(dtype, parameter(cx, 2, i));
    if (y->dtype.is_float() && cx.info().attr_bool("saturate")) {
      const double greatest = greatest_of(y->dtype);
      q = min_of(max_of(q, number(dtype, -greatest)), number(dtype, greatest));
    }
    return as(y->dtype, q);  // saturates if it is an integer
  })});
}

// ---- dequantize_linear ----

TypeRef infer_dequantize(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (cx.has(2)) require_same_dtype(cx, 2, 0);
  require_parameters(cx);
  return tensor_type(cx.tensor(1).dtype, dims_of(x));
}

loop::ComputeRef lower_dequantize(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  DataType dtype = wide(y->dtype);
  return cx.compute({map_stage(y, [&](const Indices& i) {
    const DataType exact = x->dtype.is_float() ? dtype : i32;
    Scalar q = as(exact, load(x, i));
    if (cx.info().has(2)) q = q - as(exact, parameter(cx, 2, i));
    return as(y->dtype, as(dtype, q) * as(dtype, parameter(cx, 1, i)));
  })});
}

Sample sample_parameters(Random& random, DataType x, DataType scale, DataType zero_point) {
  std::vector<int64_t> shape = random.shape(1, 3), parameters;
  size_t axis = static_cast<size_t>(random.between(0, static_cast<int64_t>(shape.size()) - 1));
  int64_t block = 0;
  switch (random.between(0, 2)) {
    case 0:
      break;
    case 1:
      parameters = {shape[axis]};
      break;
    default:
      block = random.between(1, 3);
      parameters = shape;
      parameters[axis] = (shape[axis] + block - 1) / block;
  }
  return {{sample_tensor(x, shape), sample_tensor(scale, parameters),
           random.coin() ? sample_tensor(zero_point, parameters) : unit_type()},
          attrs({{"axis", static_cast<int64_t>(axis)}, {"block_size", block}})};
}

DataType quantized_dtype(Random& random) {
  return random.coin() ? random.pick<DataType>({i8, u8, i16, u16}) : random.dtype(kNarrow);
}

Sample sample_quantize(const Operator&, uint64_t seed) {
  Random random(seed);
  DataType dtype = random.dtype(kFloats);
  return sample_parameters(random, dtype, dtype, quantized_dtype(random));
}

Sample sample_dequantize(const Operator&, uint64_t seed) {
  Random random(seed);
  DataType dtype = random.coin() ? quantized_dtype(random) : i32;
  return sample_parameters(random, dtype, random.dtype(kFloats), dtype);
}

// ---- dynamic_quantize_linear ----

TypeRef infer_dynamic(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  return tuple_type({tensor_type(u8, dims_of(x)), tensor_type(f32, {}), tensor_type(u8, {})});
}

// The range is that of x extended to include 0, so that 0 is represented exactly.
Operand expand_dynamic(Builder& b, const Call& call) {
  const Operand& x = call.args[0];
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < type_as<TensorType>(type_of(x))->rank; ++i) axes.push_back(i);
  auto number_operand = [](float v) {
    return constant(Tensor::copy_of<float>({}, f32, std::span<const float>(&v, 1)));
  };
  Operand zero = number_operand(0);
  auto extreme = [&](const char* reduction, const char* with_zero) {
    return b.op(with_zero, {b.op(reduction, {x}, attrs({{"axes", attr_ints(axes)}})), zero});
  };
  Operand low = extreme("reduce_min", "minimum"), high = extreme("reduce_max", "maximum");
  Operand scale = b.op("div", {b.op("sub", {high, low}), number_operand(255)});
  Operand zero_point = b.op("cast", {b.op("round", {b.op("div", {b.op("neg", {low}), scale})})},
                            attrs({{"dtype", u8}}));
  Operand y = b.op("quantize_linear", {x, scale, zero_point});
  return b.tuple({y, scale, zero_point});
}

Sample sample_dynamic(const Operator&, uint64_t seed) {
  Random random(seed);
  return {{sample_tensor(f32, random.shape(0, 3))}, {}};
}

}  // namespace

void register_quantize(OperatorTable& table) {
  std::vector<AttrSpec> granularity = {
      {"axis", AttrKind::kInt, "1", "of the parameters, unless they are per tensor"},
      {"block_size", AttrKind::kInt, "0", "of elements on the axis that share one; 0: no blocks"}};
  std::vector<AttrSpec> with_dtype = granularity;
  with_dtype.push_back({"dtype", AttrKind::kDType, "u8", "of the result without a zero point"});
  with_dtype.push_back({"saturate", AttrKind::kBool, "true",
                        "whether the result, if a float, is its greatest number beyond that"});
  table.add({.name = "quantize_linear",
             .kind = OpKind::kBroadcast,
             .operands = {{"x", kFloats | only(i32)},
                          {"scale", kFloats},
                          {"zero_point", quantized_dtypes(), OperandSpec::kOptional}},
             .attrs = with_dtype,
             .summary = "saturate(round(x / scale) + zero_point), halves to the even",
             .infer = infer_quantize,
             .lower = lower_quantize,
             .sample = sample_quantize,
             .layout = LayoutRule::kNamedAxes});
  table.add({.name = "dequantize_linear",
             .kind = OpKind::kBroadcast,
             .operands = {{"x", quantized_dtypes() | only(i32)},
                          {"scale", kFloats},
                          {"zero_point", quantized_dtypes() | only(i32), OperandSpec::kOptional}},
             .attrs = granularity,
             .summary = "(x - zero_point) * scale, in the dtype of scale",
             .infer = infer_dequantize,
             .lower = lower_dequantize,
             .sample = sample_dequantize,
             .cheap = true,
             .layout = LayoutRule::kNamedAxes});
  table.add({.name = "dynamic_quantize_linear",
             .kind = OpKind::kOpaque,
             .operands = {{"x", only(f32)}},
             .attrs = {},
             .summary = "x (f32) quantised to u8 by its own range: (y, scale, zero_point)",
             .infer = infer_dynamic,
             .expand = expand_dynamic,
             .sample = sample_dynamic});
}

}  // namespace tenon::graph

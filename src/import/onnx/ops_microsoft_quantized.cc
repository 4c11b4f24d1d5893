// Quantised operators of com.microsoft: functions of 8-bit numbers (QLinear...), and products and
// look-ups with weights that are quantised by blocks. docs: ContribOperators.md of ONNX Runtime.

#include "import/onnx/activation.h"
#include "import/onnx/window.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// ---- functions of 8-bit numbers ----

// Scale and zero point of a whole tensor, which may be given as lists of one element.
Operand single(NodeContext& cx, size_t i) {
  return cx.has(i) ? cx.reshape(cx.in(i), {}) : Operand();
}

// Operand i as floats; its scale and zero point follow it.
Operand real(NodeContext& cx, size_t i) {
  return cx.op("dequantize_linear", {cx.in(i), single(cx, i + 1), single(cx, i + 2)});
}

// y in the given type; operand `scale` is its scale, and the next one its zero point.
Operand quantized(NodeContext& cx, const Operand& y, size_t scale, DataType dtype) {
  return cx.op("quantize_linear", {y, single(cx, scale), single(cx, scale + 1)},
               attrs({{"dtype", Any(dtype)}}));
}

// A function of one operand: x, x_scale, x_zero, y_scale, y_zero
template <Operand (*Function)(NodeContext& cx, const Operand& x)>
Operands of_one(NodeContext& cx) {
  return {quantized(cx, Function(cx, real(cx, 0)), 3, cx.dtype(0))};
}

Operand sigmoid(NodeContext& cx, const Operand& x) {
  return cx.op("sigmoid", {x});
}

Operand leaky_relu(NodeContext& cx, const Operand& x) {
  return activation::leaky_relu(cx, x, cx.attr_float("alpha", 0.01));
}

// Before opset 13 of ONNX, Softmax is of all axes from `axis` on together.
Operand softmax(NodeContext& cx, const Operand& x) {
  const int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(x));
  if (cx.attr_int("opset") >= 13) return cx.op("softmax", {x}, attrs({{"axis", axis}}));
  const Dims d = cx.dims(x);
  const Dims before(d.begin(), d.begin() + axis), after(d.begin() + axis, d.end());
  const Operand rows = cx.reshape(x, {product(before), product(after)});
  return cx.reshape(cx.op("softmax", {rows}, attrs({{"axis", 1}})), d);
}

struct Layout {
  const char* name;
  int64_t first;  // of the spatial axes
  Dims spatial;
};

Layout layout_of(NodeContext& cx, const Operand& x) {
  const Dims d = cx.dims(x);
  if (d.size() < 3 || d.size() > 5) cx.invalid(cat("X of rank ", d.size()), "3 to 5");
  if (cx.attr_bool("channels_last", false)) return {"NHWC", 1, Dims(d.begin() + 1, d.end() - 1)};
  return {"NCHW", 2, Dims(d.begin() + 2, d.end())};
}

Operand average_pool(NodeContext& cx, const Operand& x) {
  const Layout layout = layout_of(cx, x);
  const Window window = read_window(cx, cx.attr_ints("kernel_shape"), layout.spatial);
  graph::Attrs attributes = window.attrs();
  attributes.set("kernel", graph::attr_ints(window.kernel));
  attributes.set("ceil_mode", Any(cx.attr_bool("ceil_mode", false)));
  attributes.set("count_include_pad", Any(cx.attr_bool("count_include_pad", false)));
  attributes.set("layout", Any(String(layout.name)));
  return cx.op("avg_pool", {x}, attributes);
}

Operand global_average_pool(NodeContext& cx, const Operand& x) {
  const Layout layout = layout_of(cx, x);
  Ints axes;
  for (size_t i = 0; i < layout.spatial.size(); ++i) {
    axes.push_back(layout.first + static_cast<int64_t>(i));
  }
  return cx.reduce("reduce_mean", x, axes, true);
}

Operand reduce_mean(NodeContext& cx, const Operand& x) {
  return cx.reduce("reduce_mean", x, cx.axes(cx.attr_ints("axes"), cx.rank(x)),
                   cx.attr_bool("keepdims", true));
}

// y_scale, y_zero, and three operands for each part: itself, its scale and zero point
Operands concat(NodeContext& cx) {
  if (cx.count() < 5 || cx.count() % 3 != 2)
    cx.invalid(cat(cx.count(), " operands"), "2, and 3 for each part");
  Operands parts;
  for (size_t i = 2; i < cx.count(); i += 3) parts.push_back(real(cx, i));
  const int64_t axis = cx.axis(cx.attr_int("axis"), cx.rank(parts[0]));
  return {quantized(cx, cx.concat(parts, axis), 0, cx.dtype(2))};
}

// condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero
Operands where(NodeContext& cx) {
  const Operand z = cx.op("where", {cx.in(0), real(cx, 1), real(cx, 4)});
  return {quantized(cx, z, 7, cx.dtype(1))};
}

// ---- products ----

Operand matrix(NodeContext& cx, size_t i, const char* transposed) {
  if (cx.rank(i) != 2) cx.invalid(cat("operand ", i, " of rank ", cx.rank(i)), "a matrix");
  return cx.attr_bool(transposed, false) ? cx.transpose(cx.in(i), {1, 0}) : cx.in(i);
}

// a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero: integers without y_scale are exact
// up to their scale; c has the scale of the product.
Operands gemm(NodeContext& cx) {
  auto centered = [&](size_t i, const char* transposed) {
    const Operand x = cx.cast(matrix(cx, i, transposed), i32);
    return cx.has(i + 2) ? cx.sub(x, cx.cast(cx.in(i + 2), i32)) : x;
  };
  Operand sum = cx.op("matmul", {centered(0, "transA"), centered(3, "transB")});
  if (cx.has(6)) sum = cx.add(sum, cx.in(6));
  Operand scale = cx.mul(cx.in(1), cx.in(4));
  if (const double alpha = cx.attr_float("alpha", 1); alpha != 1)
    scale = cx.mul(scale, cx.scalar_like(scale, alpha));
  const Operand y = cx.mul(cx.cast(sum, f32), scale);
  if (!cx.has(7)) return {y};
  return {quantized(cx, y, 7, cx.has(8) ? cx.dtype(8) : cx.dtype(0))};
}

// ---- weights by blocks ----

int64_t bits_of(NodeContext& cx) {
  const int64_t bits = cx.attr_int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) cx.unsupported(cat("bits=", bits, " not implemented"));
  return bits;
}

// The numbers of `bits` in bytes, the lowest first, along the last axis.
Operand unpack_bits(NodeContext& cx, const Operand& bytes, int64_t bits) {
  if (bits == 8) return bytes;
  const int64_t each = 8 / bits;
  Dims shape = cx.dims(bytes);
  std::vector<double> shifts;
  for (int64_t i = 0; i < each; ++i) shifts.push_back(static_cast<double>(i * bits));
  const Operand column = cx.unsqueeze(bytes, {cx.rank(bytes)});
  const Operand shifted =
      cx.op("shift_right", {column, graph::constant(make_tensor(u8, {each}, shifts))});
  const Operand low = cx.op("bitwise_and", {shifted, cx.scalar(u8, (1 << bits) - 1)});
  shape.back() = shape.back() * each;
  return cx.reshape(low, shape);
}

struct BlockedWeights {
  int64_t rows, columns, bits, block, blocks;  // N, K, ...
  DataType dtype;                              // of what is computed
};

BlockedWeights blocked_weights(NodeContext& cx) {
  BlockedWeights w;
  w.rows = cx.attr_int("N");
  w.columns = cx.attr_int("K");
  w.block = cx.attr_int("block_size");
  w.bits = bits_of(cx);
  if (w.rows <= 0 || w.columns <= 0 || w.block <= 0)
    cx.invalid(cat("N=", w.rows, ", K=", w.columns, ", block_size=", w.block), "positive numbers");
  if (w.block * w.bits % 8 != 0)
    cx.invalid(cat("block_size=", w.block, " with bits=", w.bits), "whole bytes");
  w.blocks = (w.columns + w.block - 1) / w.block;
  w.dtype = cx.dtype(0);
  return w;
}

// [rows, blocks]: the zero point of each block.
Operand zero_points(NodeContext& cx, size_t i, const BlockedWeights& w) {
  if (!cx.has(i)) return cx.full(w.dtype, 1 << (w.bits - 1), {w.rows, w.blocks});
  if (cx.dtype(i) != u8) return cx.cast(cx.reshape(cx.in(i), {w.rows, w.blocks}), w.dtype);
  const int64_t bytes = (w.blocks * w.bits + 7) / 8;
  const Operand all = unpack_bits(cx, cx.reshape(cx.in(i), {w.rows, bytes}), w.bits);
  return cx.cast(cx.slice(all, 1, 0, w.blocks), w.dtype);
}

// [rows, columns]: the weights as floats. g_idx names the block whose parameters a column has.
Operand real_weights(NodeContext& cx, const BlockedWeights& w) {
  const Operand bytes = cx.reshape(cx.in(1), {w.rows, w.blocks, w.block * w.bits / 8});
  Operand numbers = cx.cast(unpack_bits(cx, bytes, w.bits), w.dtype);
  Operand scales = cx.cast(cx.reshape(cx.in(2), {w.rows, w.blocks}), w.dtype);
  Operand zeros = zero_points(cx, 3, w);
  auto flat = [&](const Operand& x) {
    return cx.slice(cx.reshape(x, {w.rows, w.blocks * w.block}), 1, 0, w.columns);
  };
  if (!cx.has(4)) {
    const Operand centered = cx.sub(numbers, cx.unsqueeze(zeros, {2}));
    return flat(cx.mul(centered, cx.unsqueeze(scales, {2})));
  }
  const Operand groups = cx.slice(cx.in(4), 0, 0, w.columns);
  auto of_columns = [&](const Operand& x) {
    return cx.op("gather", {x, groups}, attrs({{"axis", 1}}));
  };
  return cx.mul(cx.sub(flat(numbers), of_columns(zeros)), of_columns(scales));
}

// A, B, scales, zero_points, g_idx, bias. A B without elements stands for zeros.
Operands matmul_n_bits(NodeContext& cx) {
  cx.ignore("accuracy_level");  // permits less than the type's own
  if (const int64_t layout = cx.attr_int("weight_prepacked", 0); layout != 0)
    cx.unsupported(cat("weight_prepacked=", layout, " not implemented"));
  const BlockedWeights w = blocked_weights(cx);
  Operand y;
  if (product(cx.dims(1)).is_const(0)) {
    Dims shape = cx.dims(0);
    shape.back() = w.rows;
    y = cx.full(w.dtype, 0, shape);
  } else {
    y = cx.op("matmul", {cx.in(0), cx.transpose(real_weights(cx, w), {1, 0})});
  }
  return {cx.has(5) ? cx.add(y, cx.in(5)) : y};
}

// A table of numbers that are quantised by blocks of one axis.
struct BlockedTable {
  Operand numbers, scales, zeros;  // zeros may be null
};

// Scales of 1 element on other axes serve all of them.
Operand full_scales(NodeContext& cx, const Operand& scales, const Dims& numbers, size_t axis) {
  Dims shape = cx.dims(scales);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != axis && shape[i].is_const(1)) shape[i] = numbers[i];
  }
  return cx.expand(scales, shape);
}

// Bytes as the numbers packed in them, with the zero points that they have without any.
void unpack_table(NodeContext& cx, BlockedTable& t, int64_t bits) {
  const Dims scales = cx.dims(t.scales);
  t.numbers = unpack_bits(cx, t.numbers, bits);
  if (!t.zeros) {
    t.zeros = cx.full(u8, 1 << (bits - 1), scales);
  } else {
    t.zeros = cx.slice(unpack_bits(cx, t.zeros, bits), cx.rank(t.zeros) - 1, 0, scales.back());
  }
}

// data, indices, scales, zero_points. Indices out of range give zeros.
Operands gather_block_quantized(NodeContext& cx) {
  const int64_t rank = cx.rank(0), picked = cx.rank(1);
  const int64_t from = cx.axis(cx.attr_int("gather_axis", 0), rank);
  int64_t axis = cx.axis(cx.attr_int("quantize_axis", 1), rank);
  const bool same = from == axis, packed = cx.dtype(0) == u8;
  const int64_t bits = bits_of(cx);
  if (packed && bits < 8 && from == rank - 1)
    cx.invalid("gather_axis the last of packed data", "another axis");
  BlockedTable t{cx.in(0), cx.in(2), cx.opt(3)};
  Dims sizes = cx.dims(0);
  if (cx.dtype(0).is_float())
    t.scales = full_scales(cx, t.scales, sizes, static_cast<size_t>(axis));
  int64_t block = cx.attr_int("block_size", 128);
  if (block == 0) block = constant_sizes(cx, t.numbers, static_cast<size_t>(axis), "a block")[0];
  if (block < 0) cx.invalid(cat("block_size=", block), "0 or more");

  const Operand size = cx.dim_scalar(sizes[static_cast<size_t>(from)]);
  const Operand index = cx.cast(cx.in(1), i64);
  const Operand exists =
      cx.op("logical_and",
            {cx.op("less", {index, size}), cx.op("greater_equal", {index, cx.op("neg", {size})})});
  const Operand safe = cx.op("where", {exists, index, cx.integer(0)});
  auto pick = [&](const Operand& x) {
    return x ? cx.op("gather", {x, safe}, attrs({{"axis", from}})) : x;
  };
  if (!same) {
    t = {pick(t.numbers), pick(t.scales), pick(t.zeros)};
    if (axis > from) axis += picked - 1;
  }
  if (packed) unpack_table(cx, t, bits);
  Operand y = cx.op("dequantize_linear", {t.numbers, t.scales, t.zeros},
                    attrs({{"axis", axis}, {"block_size", block}}));
  if (same) y = pick(y);
  Dims shape(static_cast<size_t>(rank - 1 + picked), Dim(1));
  for (int64_t i = 0; i < picked; ++i) {
    shape[static_cast<size_t>(from + i)] = cx.dims(1)[static_cast<size_t>(i)];
  }
  return {cx.op("where", {cx.reshape(exists, shape), y, cx.scalar_like(y, 0)})};
}

}  // namespace

void register_microsoft_quantized(OpTable& t) {
  t.add("QLinearSigmoid", 1, of_one<sigmoid>, kMicrosoft);
  t.add("QLinearLeakyRelu", 1, of_one<leaky_relu>, kMicrosoft);
  t.add("QLinearSoftmax", 1, of_one<softmax>, kMicrosoft);
  t.add("QLinearAveragePool", 1, of_one<average_pool>, kMicrosoft);
  t.add("QLinearGlobalAveragePool", 1, of_one<global_average_pool>, kMicrosoft);
  t.add("QLinearReduceMean", 1, of_one<reduce_mean>, kMicrosoft);
  t.add("QLinearConcat", 1, concat, kMicrosoft);
  t.add("QLinearWhere", 1, where, kMicrosoft);
  t.add("QGemm", 1, gemm, kMicrosoft);
  t.add("MatMulNBits", 1, widened<matmul_n_bits>, kMicrosoft);
  t.add("GatherBlockQuantized", 1, gather_block_quantized, kMicrosoft);
}

}  // namespace tenon::onnx

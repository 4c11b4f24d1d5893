// Products and look-ups of com.microsoft with weights of few bits, which blocks of them scale.
// docs: ContribOperators.md of ONNX Runtime.

#include "import/onnx/packed_bits.h"
#include "import/onnx/window.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

int64_t bits_of(NodeContext& cx) {
  const int64_t bits = cx.attr_int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) cx.unsupported(cat("bits=", bits, " not implemented"));
  return bits;
}

// N, K and block_size, such that their products fit 64 bits.
struct Sizes {
  int64_t rows, columns, block;
};

Sizes sizes_of(NodeContext& cx) {
  const Sizes s{cx.attr_int("N"), cx.attr_int("K"), cx.attr_int("block_size")};
  for (int64_t size : {s.rows, s.columns, s.block}) {
    if (size <= 0 || size > INT32_MAX)
      cx.invalid(cat("N=", s.rows, ", K=", s.columns, ", block_size=", s.block),
                 "positive numbers of 32 bits");
  }
  return s;
}

struct BlockedWeights {
  int64_t rows, columns, bits, block, blocks;  // N, K, ...
  DataType dtype;                              // of what is computed
};

BlockedWeights blocked_weights(NodeContext& cx) {
  const Sizes sizes = sizes_of(cx);
  BlockedWeights w{sizes.rows, sizes.columns, bits_of(cx), sizes.block, 0, cx.dtype(0)};
  if (w.block * w.bits % 8 != 0)
    cx.invalid(cat("block_size=", w.block, " with bits=", w.bits), "whole bytes");
  w.blocks = (w.columns + w.block - 1) / w.block;
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

// [columns, rows]: the weights as floats. They stay numbers of their few bits until a product reads
// them, unless zero points are floats or columns name their block (g_idx).
Operand dequantised_weights(NodeContext& cx, const BlockedWeights& w) {
  auto transposed = [&](const Operand& x) { return cx.transpose(x, {1, 0}); };
  const int64_t bytes = w.block * w.bits / 8;
  const Operand packed = transposed(cx.reshape(cx.in(1), {w.rows, w.blocks * bytes}));
  const Operand all =
      w.bits == 8 ? packed : cx.op("unpack_bits", {packed}, attrs({{"bits", w.bits}}));
  const Operand numbers = cx.slice(all, 0, 0, w.columns);
  const Operand scales = transposed(cx.cast(cx.reshape(cx.in(2), {w.rows, w.blocks}), w.dtype));
  Operand zeros = cx.full(u8, 1 << (w.bits - 1), {w.blocks, w.rows});
  if (cx.has(3)) {
    const Operand in_bytes = cx.reshape(cx.in(3), {w.rows, (w.blocks * w.bits + 7) / 8});
    zeros = transposed(cx.slice(unpack_bits(cx, in_bytes, w.bits), 1, 0, w.blocks));
  }
  return cx.op("dequantize_linear", {numbers, scales, zeros},
               attrs({{"axis", 0}, {"block_size", w.block}}));
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
    const bool named = cx.has(4), real_zeros = cx.has(3) && cx.dtype(3) != u8;
    y = cx.op("matmul", {cx.in(0), named || real_zeros ? cx.transpose(real_weights(cx, w), {1, 0})
                                                       : dequantised_weights(cx, w)});
  }
  return {cx.has(5) ? cx.add(y, cx.in(5)) : y};
}

// The numbers that 4 bits stand for, by their sign and size or by how frequent they are.
const std::vector<double> kFp4 = {
    0,    0.005208333333,  2.0 / 3,  1,  1.0 / 3,  0.5,  1.0 / 6,  0.25,
    -0.0, -0.005208333333, -2.0 / 3, -1, -1.0 / 3, -0.5, -1.0 / 6, -0.25};
const std::vector<double> kNf4 = {-1.0,
                                  -0.6961928009986877,
                                  -0.5250730514526367,
                                  -0.39491748809814453,
                                  -0.28444138169288635,
                                  -0.18477343022823334,
                                  -0.09105003625154495,
                                  0.0,
                                  0.07958029955625534,
                                  0.16093020141124725,
                                  0.24611230194568634,
                                  0.33791524171829224,
                                  0.44070982933044434,
                                  0.5626170039176941,
                                  0.7229568362236023,
                                  1.0};

// A, B (two numbers in each byte, the higher bits first), the greatest of each block of B.
Operands matmul_bnb4(NodeContext& cx) {
  cx.ignore("training_mode");
  const auto [rows, columns, block] = sizes_of(cx);
  const int64_t type = cx.attr_int("quant_type");
  if (type != 0 && type != 1) cx.invalid(cat("quant_type=", type), "0 or 1: FP4 or NF4");
  const DataType dtype = cx.dtype(0);
  const int64_t count = rows * columns, blocks = (count + block - 1) / block;
  const Operand bytes = cx.reshape(cx.in(1), {(count + 1) / 2, 1});
  const Operand each = cx.concat({cx.op("shift_right", {bytes, cx.scalar(u8, 4)}),
                                  cx.op("bitwise_and", {bytes, cx.scalar(u8, 15)})},
                                 1);
  const Operand index = cx.slice(cx.reshape(each, {(count + 1) / 2 * 2}), 0, 0, count);
  const Operand table = graph::constant(make_tensor(dtype, {16}, type == 0 ? kFp4 : kNf4));
  const Operand numbers = cx.op("gather", {table, cx.cast(index, i64)}, attrs({{"axis", 0}}));
  const Operand greatest = cx.reshape(cx.cast(cx.in(2), dtype), {blocks, 1});
  const Operand scales =
      cx.slice(cx.reshape(cx.expand(greatest, {blocks, block}), {blocks * block}), 0, 0, count);
  const Operand b = cx.reshape(cx.mul(numbers, scales), {rows, columns});
  return {cx.op("matmul", {cx.in(0), cx.attr_bool("transB", true) ? cx.transpose(b, {1, 0}) : b})};
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

void register_microsoft_weights(OpTable& t) {
  t.add("MatMulNBits", 1, widened<matmul_n_bits>, kMicrosoft);
  t.add("MatMulBnb4", 1, widened<matmul_bnb4>, kMicrosoft);
  t.add("GatherBlockQuantized", 1, gather_block_quantized, kMicrosoft);
}

}  // namespace tenon::onnx

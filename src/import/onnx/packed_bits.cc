#include "import/onnx/packed_bits.h"

namespace tenon::onnx {

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

Operand pack_4_bits(NodeContext& cx, const Operand& numbers) {
  Dims shape = cx.dims(numbers);
  const int64_t last = cx.rank(numbers);
  shape.back() = divide({shape.back()}, {2});
  shape.push_back(2);
  const Operand pairs = cx.reshape(numbers, shape);
  auto half = [&](int64_t which) { return cx.squeeze(cx.slice(pairs, last, which, 1), {last}); };
  return cx.op("bitwise_or", {half(0), cx.op("shift_left", {half(1), cx.scalar(u8, 4)})});
}

}  // namespace tenon::onnx

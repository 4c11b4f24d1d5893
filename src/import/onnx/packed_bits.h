// Numbers of 2 or 4 bits that are packed in bytes, the lowest bits first, along the last axis.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

// The numbers, u8. Of 8 bits, they are the bytes themselves.
Operand unpack_bits(NodeContext& cx, const Operand& bytes, int64_t bits);
// The bytes of numbers of 4 bits, u8, of which the last axis has an even number.
Operand pack_4_bits(NodeContext& cx, const Operand& numbers);

}  // namespace tenon::onnx

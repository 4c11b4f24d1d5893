#include "vm/isa/allocation.h"

#include "object/dtype.h"
#include "vm/isa/operand_index.h"

namespace tenon::vm {
namespace {

// The index of the operands that state a tensor's dtype and its first dimension.
struct TensorOperands {
  uint32_t dtype, dims;
};

std::optional<TensorOperands> tensor_operands(Opcode opcode) {
  switch (opcode) {
    case Opcode::AllocTensor:
      return TensorOperands{operand(Opcode::AllocTensor, "dtype"),
                            operand(Opcode::AllocTensor, "dims")};
    case Opcode::NewTensor:
      return TensorOperands{operand(Opcode::NewTensor, "dtype"),
                            operand(Opcode::NewTensor, "dims")};
    case Opcode::AllocResult:
      return TensorOperands{operand(Opcode::AllocResult, "dtype"),
                            operand(Opcode::AllocResult, "dims")};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> known_tensor_bytes(const Instruction& instruction) {
  const auto at = tensor_operands(instruction.opcode());
  if (!at) return std::nullopt;
  const auto dtype = static_cast<uint32_t>(instruction.arg(at->dtype).value());
  int64_t bytes = DataType::from_word(dtype).bytes();
  for (uint32_t i = at->dims; i < instruction.operands.size(); ++i) {
    const Arg dim = instruction.arg(i);
    if (!dim.is(ArgKind::Immediate) || __builtin_mul_overflow(bytes, dim.value(), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace tenon::vm

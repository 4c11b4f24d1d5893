// The instructions that make a tensor which nothing has written yet.
#pragma once

#include <cstdint>
#include <optional>

#include "vm/isa/operand_index.h"

namespace tenon::report {

struct NewTensor {
  std::optional<uint32_t> dtype, dims;  // operands: of the dtype, and the first size, if stated
};

// Nullopt for other instructions.
constexpr std::optional<NewTensor> new_tensor(vm::Opcode opcode) {
  using vm::Opcode;
  using vm::operand;
  switch (opcode) {
    case Opcode::AllocTensor:
      return NewTensor{operand(Opcode::AllocTensor, "dtype"), operand(Opcode::AllocTensor, "dims")};
    case Opcode::NewTensor:
      return NewTensor{operand(Opcode::NewTensor, "dtype"), operand(Opcode::NewTensor, "dims")};
    case Opcode::AllocResult:
      return NewTensor{operand(Opcode::AllocResult, "dtype"), operand(Opcode::AllocResult, "dims")};
    case Opcode::AllocTensorReg:
      return NewTensor{};
    default:
      return std::nullopt;
  }
}

}  // namespace tenon::report

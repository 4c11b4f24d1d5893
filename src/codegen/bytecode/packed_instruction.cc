#include "codegen/bytecode/packed_instruction.h"

#include <algorithm>
#include <string_view>

namespace tenon::codegen {

using vm::Opcode;

namespace {

struct PackedInstruction {
  std::string_view function;
  Opcode opcode;
};

constexpr PackedInstruction kInstructions[] = {
    {"vm.array_size", Opcode::ArraySize},
    {"vm.array_get", Opcode::GetField},
    {"vm.array_set", Opcode::ArraySet},
    {"vm.array_append", Opcode::ArrayPush},
};

}  // namespace

Opcode instruction_of(const graph::Call& call) {
  if (call.kind != graph::CalleeKind::kPacked) return Opcode::None;
  const auto* const found =
      std::ranges::find(kInstructions, call.callee.view(), &PackedInstruction::function);
  return found == std::end(kInstructions) ? Opcode::None : found->opcode;
}

bool borrows_argument(Opcode opcode, size_t index) {
  return opcode != Opcode::None &&
         vm::info_of(opcode).specs()[index + 1].kind == vm::OperandKind::Lent;
}

}  // namespace tenon::codegen

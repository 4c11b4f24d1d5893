#include "codegen/bytecode/packed_instruction.h"

#include "graph/ir/value_words.h"

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
    {graph::kArraySize, Opcode::ArraySize},
    {graph::kArrayGet, Opcode::GetField},
    {graph::kArraySet, Opcode::ArraySet},
    {graph::kArrayAppend, Opcode::ArrayPush},
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

// Virtual code: the form of a function between graph IR and bytecode: machine instructions over any
// number of virtual registers, in blocks with explicit edges.
//
//   block 0 (r0 r1):                a block's parameters, written by its incoming edges
//     r2 = lt r0, 1
//     branch r2, block 1, block 2
//   block 1:
//     return r1
//   block 2:
//     r3 = sub r0, 1
//     self_call (r3 r1)             a jump to block 0, whose parameters are the function's
//
// It is in SSA form: a register is written once, by an instruction or as a block's parameter, and
// that definition dominates every use. Blocks are ordered so that every edge leads to a later
// block, except back edges to a loop's header and self calls; a loop's blocks are contiguous,
// header first. A block with several successors passes no arguments and is the only predecessor of
// each, so that every edge has its own place for code.
//
// Operands are vm::Args with virtual register indices. Liveness marks last uses.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "vm/isa/code_builder.h"

namespace tenon::codegen {

using Register = uint32_t;
using BlockId = uint32_t;

struct VirtualInstruction {
  vm::Opcode opcode{};
  uint32_t span = 0;  // index in the unit
  std::vector<vm::Arg> operands;
  uint32_t cell_size = 0;  // of a get_field: how many fields the cell has; 0 if it isn't known
};

// How control leaves a block.
enum class Exit : uint8_t {
  Jump,      // to target, with args
  Branch,    // to target if value is not 0, else to otherwise
  Switch,    // to the target of the case that value is, else to otherwise
  Return,    // returns value
  SelfCall,  // a tail call of this function with args: to block 0
  Left,      // the last instruction has already left the frame
};

inline constexpr uint32_t kNoLoop = UINT32_MAX;

struct SwitchCase {
  int64_t value;
  BlockId target;
};

struct VirtualBlock {
  std::vector<Register> params;
  std::vector<VirtualInstruction> instructions;
  Exit exit = Exit::Left;
  uint32_t exit_span = 0;
  vm::Arg value = vm::Arg::none();
  BlockId target = 0, otherwise = 0;
  std::vector<SwitchCase> cases;  // of a Switch
  std::vector<vm::Arg> args;      // one per parameter of the target
  uint32_t loop = kNoLoop;        // the innermost enclosing loop
};

// A while loop: header ... test, where test branches to the body or to `exit`; body ... latch,
// which jumps back to the header. Both parts are consecutive ranges of blocks.
struct VirtualLoop {
  BlockId header = 0, test = 0, body = 0, latch = 0, exit = 0;
  uint32_t parent = kNoLoop;
  uint32_t depth = 1;
};

class VirtualCode {
 public:
  // ---- building ----
  // `owns`: whether it may hold an object, which must be released; integers and booleans own
  // nothing.
  Register make_register(bool owns);
  vm::Arg make(bool owns) { return vm::Arg::reg(make_register(owns)); }
  // A register that borrows (vm/isa/opcodes.def): it owns nothing, and every operand but the one
  // that writes it names it as borrowed.
  vm::Arg make_borrowing();
  BlockId make_block();
  vm::Arg add_param(BlockId block, bool owns);
  vm::Arg add_borrowing_param(BlockId block);
  // Starts `block`, next in the order: following instructions are added to it.
  void start(BlockId block);
  void set_span(uint32_t span) { span_ = span; }

  void emit(vm::Opcode opcode, std::initializer_list<vm::Arg> operands,
            std::span<const vm::Arg> list = {});
  // `cell_size`: how many fields the object has; 0 if it isn't known to be a cell.
  void get_field(vm::Arg dst, vm::Arg object, uint32_t index, uint32_t cell_size = 0);
  // The instructions of the current block from `first` on are those of `count` packed calls, whose
  // operands are computed before all of them: makes the calls a group (`concurrent`).
  void group_calls(size_t first, int64_t count);
  size_t instruction_count() const { return blocks_[current_].instructions.size(); }
  void match_shape(vm::Arg value, std::span<const vm::DimPattern> dims);
  void match_tensor(vm::Arg value, DataType dtype, std::span<const vm::DimPattern> dims);
  void match_prim_value(vm::Arg value, const vm::DimPattern& expected);

  // Each of these ends the current block.
  void jump(BlockId target, std::vector<vm::Arg> args = {});
  void branch(vm::Arg condition, BlockId target, BlockId otherwise);
  void switch_on(vm::Arg value, std::vector<SwitchCase> cases, BlockId otherwise);
  void ret(vm::Arg value);
  void self_call(std::vector<vm::Arg> args);
  void left();
  bool ended() const { return ended_; }
  BlockId current() const { return current_; }

  // Blocks started from here until end_loop belong to the loop with that header.
  uint32_t begin_loop(BlockId header, BlockId exit);
  VirtualLoop& loop(uint32_t index) { return loops_[index]; }
  void end_loop();

  // ---- inspecting ----
  const std::vector<BlockId>& order() const { return order_; }
  VirtualBlock& block(BlockId id) { return blocks_[id]; }
  const VirtualBlock& block(BlockId id) const { return blocks_[id]; }
  uint32_t block_count() const { return static_cast<uint32_t>(blocks_.size()); }
  const std::vector<VirtualLoop>& loops() const { return loops_; }
  // Each block's position in the order.
  std::vector<uint32_t> places() const;
  uint32_t loop_depth(BlockId id) const;
  uint32_t register_count() const { return static_cast<uint32_t>(owns_.size()); }
  bool owns(Register r) const { return owns_[r]; }
  bool borrows(Register r) const { return borrows_[r]; }

 private:
  VirtualBlock& end(Exit exit);

  std::vector<VirtualBlock> blocks_;
  std::vector<BlockId> order_;
  std::vector<VirtualLoop> loops_;
  std::vector<bool> owns_, borrows_;
  BlockId current_ = 0;
  uint32_t span_ = 0;
  uint32_t loop_ = kNoLoop;
  bool ended_ = true;
};

// Calls f(block) for each successor of a Branch or Switch.
template <class F>
void for_each_successor(const VirtualBlock& block, const F& f) {
  if (block.exit == Exit::Branch) f(block.target);
  for (const SwitchCase& c : block.cases) f(c.target);
  f(block.otherwise);
}

// Calls f(operand index, role) for each operand of the instruction that names a register. Only a
// ReadsValue may be marked as the register's last use.
template <class F>
void for_each_register(const VirtualInstruction& instruction, const F& f) {
  const vm::OpcodeInfo& info = vm::info_of(instruction.opcode);
  for (uint32_t i = 0; i < instruction.operands.size(); ++i) {
    if (!instruction.operands[i].is_register()) continue;
    uint32_t part = 0;
    const vm::OperandKind kind = info.spec_at(i, &part).kind;
    f(i, vm::role_of(kind, part, instruction.operands[i - part]));
  }
}

// One line per instruction, as shown above; for tests and failed assertions.
std::string to_text(const VirtualCode& code);

}  // namespace tenon::codegen

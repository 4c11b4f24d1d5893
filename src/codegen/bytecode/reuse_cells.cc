#include "codegen/bytecode/reuse_cells.h"

#include <algorithm>

#include "support/poll.h"
#include "vm/isa/operand_index.h"

namespace tenon::codegen {

using vm::Arg;
using vm::ArgKind;
using vm::Opcode;
using vm::OperandRole;

namespace {

constexpr uint32_t kDst = vm::operand(Opcode::GetField, "dst"),
                   kObject = vm::operand(Opcode::GetField, "object"),
                   kIndex = vm::operand(Opcode::GetField, "index");
// The blocks that are searched for a place where a cell's memory is used again, and the
// instructions for reads of its fields.
constexpr size_t kMaxSearched = 64, kMaxScanned = 256;

class Reuse {
 public:
  explicit Reuse(VirtualCode* code) : code_(*code), jumps_to_(code->block_count(), 0) {}

  bool run() {
    for (const BlockId id : code_.order()) {
      const VirtualBlock& block = code_.block(id);
      if (block.exit == Exit::Jump) ++jumps_to_[block.target];
    }
    bool changed = false;
    for (const BlockId id : code_.order()) {
      std::vector<VirtualInstruction>& all = code_.block(id).instructions;
      bool changed_block = false;
      for (size_t i = 0; i < all.size(); ++i) {
        ticker_.tick();
        if (!is_last_read(all[i])) continue;
        take_fields(id, i);
        changed_block = true;
      }
      if (changed_block) std::erase_if(all, is_removed);
      changed |= changed_block;
    }
    return changed;
  }

 private:
  static bool is_last_read(const VirtualInstruction& in) {
    return in.opcode == Opcode::GetField && in.cell_size > 0 &&
           in.operands[kObject].is(ArgKind::LastUse);
  }
  static bool is_removed(const VirtualInstruction& in) { return in.opcode == Opcode::None; }

  // Replaces the reads that end with instruction `last` by one instruction, in place of the first.
  void take_fields(BlockId id, size_t last) {
    std::vector<VirtualInstruction>& all = code_.block(id).instructions;
    const Register cell = all[last].operands[kObject].index();
    const uint32_t size = all[last].cell_size;
    VirtualInstruction taking{Opcode::TakeFields, 0, {Arg::reg(cell)}, 0};
    taking.operands.resize(1 + size, Arg::none());
    size_t first = last;
    for (size_t i = last, end = last - std::min(last, kMaxScanned);; --i) {
      ticker_.tick();
      if (mentions(all[i], cell)) {
        if (all[i].opcode != Opcode::GetField || all[i].cell_size != size) break;
        Arg& to = taking.operands[1 + static_cast<size_t>(all[i].operands[kIndex].value())];
        if (!to.is_none()) break;  // the field is read twice
        to = all[i].operands[kDst];
        all[i].opcode = Opcode::None;
        first = i;
      }
      if (i == end) break;
    }
    taking.span = all[first].span;
    all[first] = std::move(taking);
    reuse(id, first + 1, cell, size);
  }

  static bool mentions(const VirtualInstruction& in, Register r) {
    bool found = false;
    if (is_removed(in)) return found;
    for_each_register(in, [&](uint32_t i, OperandRole) { found |= in.operands[i].index() == r; });
    return found;
  }

  // Only blocks are searched that the cell's block dominates: successors of a branch have no other
  // predecessor.
  void reuse(BlockId block, size_t from, Register cell, uint32_t size) {
    std::vector<BlockId> open = {block};
    for (size_t searched = 0; !open.empty() && searched < kMaxSearched; ++searched) {
      const BlockId id = open.back();
      open.pop_back();
      VirtualBlock& b = code_.block(id);
      const auto begin = b.instructions.begin() +
                         (id == block ? static_cast<std::ptrdiff_t>(from) : std::ptrdiff_t{0});
      const auto made = std::find_if(begin, b.instructions.end(), [&](const auto& in) {
        ticker_.tick();
        return in.opcode == Opcode::AllocAdt && field_count(in) == size;
      });
      if (made != b.instructions.end()) {
        made->opcode = Opcode::ReuseAdt;
        made->operands.insert(made->operands.begin() + vm::operand(Opcode::ReuseAdt, "object"),
                              Arg::reg(cell));
      } else if (b.exit == Exit::Branch || b.exit == Exit::Switch) {
        for_each_successor(b, [&](BlockId successor) { open.push_back(successor); });
      } else if (b.exit == Exit::Jump && jumps_to_[b.target] == 1) {
        open.push_back(b.target);
      }
    }
  }

  static size_t field_count(const VirtualInstruction& in) {
    return in.operands.size() - vm::operand(Opcode::AllocAdt, "fields");
  }

  VirtualCode& code_;
  std::vector<uint32_t> jumps_to_;  // each block
  Ticker ticker_;
};

}  // namespace

bool reuse_cells(VirtualCode* code) {
  return Reuse(code).run();
}

}  // namespace tenon::codegen

#include "codegen/bytecode/liveness.h"

#include <algorithm>

#include "codegen/bytecode/live_set.h"
#include "support/poll.h"
#include "vm/isa/operand_index.h"

namespace tenon::codegen {

using vm::Arg;
using vm::OperandRole;

namespace {

// One walk through the blocks from the last to the first. `open_` has, for each register, the end
// of the range that it is in at the current position.
class Analysis {
 public:
  explicit Analysis(VirtualCode* code)
      : code_(*code), sets_(code->register_count()), open_(code->register_count(), 0) {}

  Liveness run() {
    out_.ranges.resize(code_.register_count());
    out_.kills.resize(code_.block_count());
    live_in_.resize(code_.block_count(), 0);
    number();
    collect_uses_in_loops();
    LiveSets::Set next = 0;  // live at the start of the next block
    uint32_t end = end_;
    for (size_t i = code_.order().size(); i-- > 0;) {
      const BlockId id = code_.order()[i];
      const LiveSets::Set live = live_at_end(id);
      sets_.for_each_missing(next, live, [&](Register r) { close(r, end); });
      sets_.for_each_missing(live, next, [&](Register r) { open_[r] = end; });
      next = live_in_[id] = through_block(id, live, end);
      end = starts_[id];
    }
    for (auto& ranges : out_.ranges) std::ranges::reverse(ranges);
    return std::move(out_);
  }

 private:
  void number() {
    starts_.resize(code_.block_count());
    definitions_.resize(code_.register_count(), 0);
    uint32_t position = 0;
    places_ = code_.places();
    for (BlockId id : code_.order()) {
      starts_[id] = position;
      const VirtualBlock& block = code_.block(id);
      for (Register r : block.params) definitions_[r] = id;
      for (const VirtualInstruction& instruction : block.instructions) {
        ticker_.tick();
        for_each_register(instruction, [&](uint32_t i, OperandRole role) {
          if (role == OperandRole::Writes) definitions_[instruction.operands[i].index()] = id;
        });
      }
      position += 2 * static_cast<uint32_t>(block.instructions.size() + 2);
    }
    end_ = position;
  }

  // A register from outside that a loop uses is live throughout the loop: there may be another
  // iteration.
  void collect_uses_in_loops() {
    if (code_.loops().empty()) return;
    used_in_loop_.resize(code_.loops().size(), 0);
    for (BlockId id : code_.order()) {
      const VirtualBlock& block = code_.block(id);
      auto use = [&](Arg arg) {
        if (!arg.is_register()) return;
        const Register r = arg.index();
        for (uint32_t l = block.loop; l != kNoLoop; l = code_.loops()[l].parent) {
          if (places_[definitions_[r]] >= places_[code_.loops()[l].header]) break;
          const LiveSets::Set with = sets_.insert(used_in_loop_[l], r);
          if (with == used_in_loop_[l]) break;  // then the enclosing loops have it too
          used_in_loop_[l] = with;
        }
      };
      for (const VirtualInstruction& instruction : block.instructions) {
        ticker_.tick();
        for_each_register(instruction, [&](uint32_t i, OperandRole role) {
          if (role != OperandRole::Writes) use(instruction.operands[i]);
        });
      }
      use(block.value);
      for (Arg arg : block.args) use(arg);
    }
  }

  LiveSets::Set live_at_end(BlockId id) {
    const VirtualBlock& block = code_.block(id);
    switch (block.exit) {
      case Exit::Jump:
        if (block.loop != kNoLoop && code_.loops()[block.loop].latch == id) {
          return live_around(block.loop);
        }
        return live_in_[block.target];
      case Exit::Branch:
      case Exit::Switch: {
        LiveSets::Set live = 0;
        for_each_successor(
            block, [&](BlockId successor) { live = sets_.unite(live, live_in_[successor]); });
        for_each_successor(block, [&](BlockId successor) {
          sets_.for_each_missing(live, live_in_[successor], [&](Register r) {
            if (code_.owns(r)) out_.kills[successor].push_back(r);
          });
        });
        return live;
      }
      case Exit::Return:
      case Exit::SelfCall:
      case Exit::Left:
        break;
    }
    return 0;
  }

  // The registers live at the loop's back edge: those from outside that it uses, and those used
  // after it but not defined in its condition.
  LiveSets::Set live_around(uint32_t index) {
    const VirtualLoop& loop = code_.loops()[index];
    LiveSets::Set live = live_in_[loop.exit];
    for (auto it = code_.order().begin() + places_[loop.header];; ++it) {
      const VirtualBlock& block = code_.block(*it);
      for (Register r : block.params) live = sets_.erase(live, r);
      for (const VirtualInstruction& instruction : block.instructions) {
        ticker_.tick();
        for_each_register(instruction, [&](uint32_t i, OperandRole role) {
          if (role == OperandRole::Writes)
            live = sets_.erase(live, instruction.operands[i].index());
        });
      }
      if (*it == loop.test) break;
    }
    return sets_.unite(live, used_in_loop_[index]);
  }

  // Walks backwards through the block, from what is live at its end; returns what is live at its
  // start.
  LiveSets::Set through_block(BlockId id, LiveSets::Set live, uint32_t end) {
    VirtualBlock& block = code_.block(id);
    auto use = [&](Arg& arg, uint32_t to, bool movable) {
      const Register r = arg.index();
      movable = movable && !arg.is(vm::ArgKind::Borrowed);
      if (open_[r]) return;
      open_[r] = to;
      if (movable && code_.owns(r)) arg = Arg::last(r);
      if (definitions_[r] != id) live = sets_.insert(live, r);
    };
    // Returns false if the value written here is never read.
    auto define = [&](Register r, uint32_t at) {
      if (!open_[r]) return false;
      close(r, at);
      live = sets_.erase(live, r);
      return true;
    };

    uint32_t position = end - 2;
    for (size_t i = block.args.size(); i-- > 0;) {
      if (block.args[i].is_register()) use(block.args[i], position + 1, true);
    }
    if (block.value.is_register()) use(block.value, position + 1, block.exit == Exit::Return);
    for (size_t i = block.instructions.size(); i-- > 0;) {
      ticker_.tick();
      position -= 2;
      VirtualInstruction& instruction = block.instructions[i];
      std::vector<Arg>& operands = instruction.operands;
      registers_.clear();
      for_each_register(instruction,
                        [&](uint32_t at, OperandRole role) { registers_.emplace_back(at, role); });
      const bool writes = std::ranges::any_of(
          registers_, [](const auto& one) { return one.second == OperandRole::Writes; });
      const bool interleaves = writes && vm::info_of(instruction.opcode).interleaves();
      const uint32_t read_until = position + (interleaves ? 2 : 1);
      for (const auto& [at, role] : registers_) {
        if (role != OperandRole::Writes || define(operands[at].index(), position + 1)) continue;
        const bool is_dim =
            vm::info_of(instruction.opcode).spec_at(at).kind == vm::OperandKind::Dim;
        if (is_dim) operands[at - 1] = Arg::imm(static_cast<int64_t>(vm::DimMatch::Ignore));
        operands[at] = Arg::none();
      }
      for (size_t k = registers_.size(); k-- > 0;) {
        const auto& [at, role] = registers_[k];
        if (role != OperandRole::Writes)
          use(operands[at], read_until, role == OperandRole::ReadsValue);
      }
    }
    const uint32_t start = position - 2;
    for (Register r : block.params) {
      if (define(r, start)) continue;
      add_range(r, {start, start + 1});
      if (code_.owns(r)) out_.kills[id].push_back(r);
    }
    return live;
  }

  void close(Register r, uint32_t from) {
    add_range(r, {from, open_[r]});
    open_[r] = 0;
  }

  void add_range(Register r, LiveRange range) {
    auto& ranges = out_.ranges[r];
    if (!ranges.empty() && ranges.back().from == range.to) {
      ranges.back().from = range.from;
    } else {
      ranges.push_back(range);
    }
  }

  VirtualCode& code_;
  LiveSets sets_;
  Ticker ticker_;
  std::vector<uint32_t> open_;    // 0 if not in a range
  std::vector<uint32_t> places_;  // of blocks in the order
  std::vector<uint32_t> starts_;
  uint32_t end_ = 0;
  std::vector<BlockId> definitions_;                         // by register
  std::vector<LiveSets::Set> live_in_;                       // by block
  std::vector<LiveSets::Set> used_in_loop_;                  // by loop: registers made outside
  std::vector<std::pair<uint32_t, OperandRole>> registers_;  // of the current instruction
  Liveness out_;
};

}  // namespace

Liveness analyse_liveness(VirtualCode* code) {
  return Analysis(code).run();
}

void remove_unneeded_releases(VirtualCode* code) {
  constexpr uint32_t kDst = vm::operand(vm::Opcode::Move, "dst"),
                     kSrc = vm::operand(vm::Opcode::Move, "src");
  for (const BlockId id : code->order()) {
    std::erase_if(code->block(id).instructions, [](const VirtualInstruction& in) {
      return in.opcode == vm::Opcode::Move && in.operands[kDst].is_none() &&
             !in.operands[kSrc].is(vm::ArgKind::LastUse);
    });
  }
}

}  // namespace tenon::codegen

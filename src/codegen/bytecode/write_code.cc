#include "codegen/bytecode/write_code.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "codegen/bytecode/comparison.h"
#include "support/poll.h"

namespace tenon::codegen {

using vm::Arg;
using vm::ArgKind;
using vm::Opcode;
using vm::OperandRole;

namespace {

constexpr BlockId kNoBlock = UINT32_MAX;

// ---- moves on edges ----

// An edge passes its arguments to the target's parameters simultaneously; this orders the moves so
// that nothing is overwritten before it is read.
class ParallelMoves {
 public:
  // `scratch` and the register after it are otherwise unused; the latter may borrow.
  ParallelMoves(vm::CodeBuilder* out, uint32_t scratch) : out_(*out), scratch_(scratch) {}

  // `source` may be a register of the frame, marked as a last use if it dies on the edge.
  void add(uint32_t to, Arg source) {
    if (!source.is_register()) {
      loads_.push_back({to, source});
      return;
    }
    const uint32_t from = source.index();
    ++readers_[from];
    if (source.is(ArgKind::LastUse)) dying_[from] = true;
    if (source.is(ArgKind::Borrowed)) borrowed_.insert(from);
    if (from != to) moves_[to] = from;
  }

  // Returns how many scratch registers were needed.
  uint32_t write() {
    std::vector<uint32_t> ready;  // nothing still reads the value that they overwrite
    for (const auto& [to, from] : moves_) {
      if (!readers_[to]) ready.push_back(to);
    }
    while (!ready.empty()) {
      const uint32_t to = ready.back();
      ready.pop_back();
      const uint32_t from = moves_.at(to);
      moves_.erase(to);
      move(to, from);
      if (!readers_[from] && moves_.contains(from)) ready.push_back(from);
    }
    uint32_t needed = 0;
    while (!moves_.empty()) {
      const uint32_t first = moves_.begin()->first;
      const bool is_borrowed = borrowed_.contains(first);
      const uint32_t scratch = scratch_ + is_borrowed;
      needed = std::max(needed, uint32_t{1} + is_borrowed);
      readers_[scratch] = 1;
      dying_[scratch] = dying_[first];
      if (is_borrowed) borrowed_.insert(scratch);
      move(scratch, first);
      uint32_t to = first, from = moves_.at(to);
      while (from != first) {
        moves_.erase(to);
        move(to, from);
        to = from;
        from = moves_.at(to);
      }
      moves_.erase(to);
      move(to, scratch);
    }
    for (const auto& [to, source] : loads_) {
      if (source.is(ArgKind::Immediate)) {
        out_.emit(Opcode::LoadInt, {Arg::reg(to), source});
      } else if (source.is(ArgKind::Constant)) {
        out_.emit(Opcode::LoadConst, {Arg::reg(to), source});
      } else {
        out_.emit(Opcode::Move, {Arg::reg(to), source});
      }
    }
    return needed;
  }

 private:
  void move(uint32_t to, uint32_t from) {
    const bool last = --readers_[from] == 0 && dying_[from];
    out_.emit(Opcode::Move, {Arg::reg(to), last                       ? Arg::last(from)
                                           : borrowed_.contains(from) ? Arg::borrowed(from)
                                                                      : Arg::reg(from)});
  }

  vm::CodeBuilder& out_;
  uint32_t scratch_;
  std::map<uint32_t, uint32_t> moves_;              // destination, source
  std::unordered_map<uint32_t, uint32_t> readers_;  // by register: the number of pending reads
  std::unordered_map<uint32_t, bool> dying_;
  std::unordered_set<uint32_t> borrowed_;
  std::vector<std::pair<uint32_t, Arg>> loads_;  // of values that aren't in registers
};

// ---- blocks ----

class Writer {
 public:
  Writer(const VirtualCode& code, const Liveness& liveness, const Assignment& assignment,
         uint32_t self)
      : code_(code),
        liveness_(liveness),
        registers_(assignment.registers),
        count_(assignment.count),
        self_(self) {}

  void run(vm::FunctionUnit* out) {
    find_destinations();
    arrange(0, code_.order().size());
    std::erase_if(layout_, [&](BlockId id) { return destinations_[id] != id; });
    for (BlockId id = 0; id < code_.block_count(); ++id) labels_.push_back(out_.make_label());
    for (size_t i = 0; i < layout_.size(); ++i) {
      write_block(layout_[i], i + 1 < layout_.size() ? layout_[i + 1] : kNoBlock);
    }
    out->register_count = count_ + used_scratch_;
    out->code = out_.finish(&out->spans);
  }

 private:
  // Finds where each block's jumps lead: past empty blocks, which aren't written.
  void find_destinations() {
    destinations_.resize(code_.block_count());
    for (size_t i = code_.order().size(); i-- > 0;) {
      const BlockId id = code_.order()[i];
      const VirtualBlock& block = code_.block(id);
      const bool passes = i > 0 && !headed_by(id) && block.exit == Exit::Jump &&
                          block.instructions.empty() && liveness_.kills[id].empty() &&
                          moves_nothing(block);
      // A loop's header precedes its latch and isn't skipped.
      const bool turns = passes && headed_by(block.target);
      destinations_[id] = !passes ? id : turns ? block.target : destinations_[block.target];
    }
  }

  bool moves_nothing(const VirtualBlock& block) const {
    const std::vector<Register>& params = code_.block(block.target).params;
    for (size_t i = 0; i < params.size(); ++i) {
      const Arg arg = place(block.args[i]);
      if (!arg.is_register() || arg.index() != registers_[params[i]]) return false;
    }
    return true;
  }

  // Appends blocks [first, last) of the order to the layout, with a loop's body before its
  // condition.
  void arrange(size_t first, size_t last) {
    const std::vector<BlockId>& order = code_.order();
    for (size_t i = first; i < last; ++i) {
      const VirtualLoop* loop = headed_by(order[i]);
      if (!loop) {
        layout_.push_back(order[i]);
        continue;
      }
      size_t body = i, end = i;
      while (order[body] != loop->body) ++body;
      end = body;
      while (order[end++] != loop->latch) {
      }
      arrange(body, end);
      layout_.push_back(order[i]);
      arrange(i + 1, body);
      i = end - 1;
    }
  }

  const VirtualLoop* headed_by(BlockId id) const {
    const uint32_t loop = code_.block(id).loop;
    if (loop == kNoLoop || code_.loops()[loop].header != id) return nullptr;
    return &code_.loops()[loop];
  }

  Arg place(Arg arg) const {
    return arg.is_register() ? Arg(arg.kind(), registers_[arg.index()]) : arg;
  }

  void write_block(BlockId id, BlockId next) {
    const VirtualBlock& block = code_.block(id);
    out_.bind(labels_[id]);
    write_kills(block, liveness_.kills[id]);
    // A comparison that the branch negates is written with the branch.
    const size_t count = block.instructions.size();
    const bool negates =
        block.exit == Exit::Branch && !goes_to(block.target, next) && negated_comparison(block);
    for (size_t i = 0; i < count - negates; ++i) {
      ticker_.tick();
      const VirtualInstruction& instruction = block.instructions[i];
      out_.set_span(instruction.span);
      write(instruction.opcode, instruction);
    }
    write_exit(block, next);
  }

  void write_kills(const VirtualBlock& block, const std::vector<Register>& kills) {
    // Leaving the frame releases its registers.
    if (kills.empty() || (block.instructions.empty() && block.exit == Exit::Return)) return;
    out_.set_span(block.instructions.empty() ? block.exit_span : block.instructions[0].span);
    std::vector<Arg> registers;
    for (Register r : kills) registers.push_back(Arg::reg(registers_[r]));
    out_.emit(Opcode::Kill, {}, registers);
  }

  void write(Opcode opcode, const VirtualInstruction& instruction) {
    std::vector<Arg> operands = instruction.operands;
    for_each_register(instruction,
                      [&](uint32_t i, OperandRole) { operands[i] = place(operands[i]); });
    out_.emit(opcode, operands);
  }

  void write_exit(const VirtualBlock& block, BlockId next) {
    out_.set_span(block.exit_span);
    switch (block.exit) {
      case Exit::Jump:
        write_moves(block);
        if (!goes_to(block.target, next)) out_.emit(Opcode::Goto, {to(block.target)});
        return;
      case Exit::Branch:
        return write_branch(block, next);
      case Exit::Switch: {
        std::vector<Arg> cases;
        for (const SwitchCase& c : block.cases) {
          cases.push_back(Arg::imm(c.value));
          cases.push_back(to(c.target));
        }
        out_.emit(Opcode::Switch, {place(block.value), to(block.otherwise)}, cases);
        return;
      }
      case Exit::Return:
        out_.emit(Opcode::Ret, {place(block.value)});
        return;
      case Exit::SelfCall: {
        write_moves(block);
        std::vector<Arg> args;
        for (Register param : code_.block(block.target).params) {
          args.push_back(code_.owns(param)      ? Arg::last(registers_[param])
                         : code_.borrows(param) ? Arg::borrowed(registers_[param])
                                                : Arg::reg(registers_[param]));
        }
        out_.emit(Opcode::TailCall, {Arg::func(self_)}, args);
        return;
      }
      case Exit::Left:
        return;
    }
  }

  void write_moves(const VirtualBlock& block) {
    ParallelMoves moves(&out_, count_);
    const std::vector<Register>& params = code_.block(block.target).params;
    for (size_t i = 0; i < params.size(); ++i)
      moves.add(registers_[params[i]], place(block.args[i]));
    used_scratch_ = std::max(used_scratch_, moves.write());
  }

  // `if` jumps if its operand is 0, which suits a branch whose target comes next. To jump if it
  // isn't 0, a comparison is negated; any other value is compared with 0 by if_eq, which jumps if
  // they differ.
  void write_branch(const VirtualBlock& block, BlockId next) {
    const Arg condition = place(block.value);
    if (goes_to(block.target, next)) {
      if (!goes_to(block.otherwise, next)) {
        out_.emit(Opcode::If, {condition, to(block.otherwise)});
      }
      return;
    }
    if (auto negated = negated_comparison(block)) {
      const VirtualInstruction& comparison = block.instructions.back();
      out_.set_span(comparison.span);
      write(*negated, comparison);
      out_.set_span(block.exit_span);
      out_.emit(Opcode::If, {condition, to(block.target)});
    } else {
      out_.emit(Opcode::IfEq, {condition, Arg::imm(0), to(block.target)});
    }
    if (!goes_to(block.otherwise, next)) out_.emit(Opcode::Goto, {to(block.otherwise)});
  }

  bool goes_to(BlockId id, BlockId next) const { return destinations_[id] == next; }
  Arg to(BlockId id) const { return out_.to(labels_[destinations_[id]]); }

  // The negated opcode of the comparison that ends the block, if only the block's branch reads its
  // result.
  std::optional<Opcode> negated_comparison(const VirtualBlock& block) const {
    if (!block.value.is_register() || block.instructions.empty()) return std::nullopt;
    const VirtualInstruction& last = block.instructions.back();
    const auto negated = negate(last.opcode);
    if (!negated || last.operands[0] != Arg::reg(block.value.index())) return std::nullopt;
    // Its only range ends at the branch.
    const auto& ranges = liveness_.ranges[block.value.index()];
    const bool only_here = ranges.size() == 1 && ranges[0].to - ranges[0].from <= 2;
    return only_here ? negated : std::nullopt;
  }

  const VirtualCode& code_;
  Ticker ticker_;
  const Liveness& liveness_;
  const std::vector<uint32_t>& registers_;
  uint32_t count_;
  uint32_t self_;
  uint32_t used_scratch_ = 0;  // registers
  vm::CodeBuilder out_;
  std::vector<BlockId> layout_, destinations_;
  std::vector<vm::Label> labels_;
};

}  // namespace

void write_code(const VirtualCode& code, const Liveness& liveness, const Assignment& assignment,
                uint32_t self, vm::FunctionUnit* out) {
  Writer(code, liveness, assignment, self).run(out);
}

}  // namespace tenon::codegen

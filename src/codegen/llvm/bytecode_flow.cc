#include "codegen/llvm/bytecode_flow.h"

#include "support/error.h"
#include "support/poll.h"

namespace tenon::codegen {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::Instruction;
using vm::OpClass;
using vm::Opcode;

constexpr uint32_t kNone = UINT32_MAX;
// LLVM takes about 5 ms for each call, and more than linear time for the registers of a loop.
constexpr size_t kMostInstructions = 2000, kMostCalls = 200, kMostRegisters = 128;

std::vector<Arg> labels_of(const Instruction& in) {
  std::vector<Arg> labels;
  for (uint32_t i = 0; i < in.operands.size(); ++i) {
    if (in.arg(i).is(ArgKind::Label)) labels.push_back(in.arg(i));
  }
  return labels;
}

void step_back(RegisterSet& live, const Instruction& in) {
  for_each_write(in, [&](uint32_t r) { live.remove(r); });
  for_each_read(in, [&](Arg a, vm::OperandRole) { live.add(a.index()); });
}

}  // namespace

bool is_call(const Instruction& in) {
  return in.opcode() == Opcode::Call || in.opcode() == Opcode::CallClosure;
}

bool is_worth_compiling(const vm::Unit& unit) {
  size_t instructions = 0, calls = 0;
  bool has_loop_or_match = false;
  for (const vm::FunctionUnit& function : unit.functions) {
    if (function.register_count > kMostRegisters) return false;
    for (uint32_t at = 0; at < function.code.size(); ++instructions) {
      Instruction in;
      TENON_ASSERT(decode(function.code, at, &in), "code that doesn't decode");
      calls += in.info->calls() && in.opcode() != Opcode::CallPacked;
      has_loop_or_match |= in.opcode() == Opcode::Switch;
      for (const Arg label : labels_of(in)) has_loop_or_match |= label.index() <= at;
      at += in.words();
    }
  }
  const bool is_large = instructions > kMostInstructions || calls > kMostCalls;
  return !is_large && (calls > 0 || has_loop_or_match);
}

BytecodeFlow::BytecodeFlow(const vm::FunctionUnit& f) : function(f) {
  find_blocks();
  find_live_registers();
  find_pieces();
}

void BytecodeFlow::find_blocks() {
  const size_t words = function.code.size();
  std::vector<bool> begins(words + 1);
  begins[0] = true;
  std::vector<uint32_t> word_of;
  for (uint32_t at = 0; at < words;) {
    Instruction in;
    TENON_ASSERT(decode(function.code, at, &in), "code that doesn't decode");
    const std::vector<Arg> labels = labels_of(in);
    for (const Arg label : labels) begins[label.index()] = true;
    word_of.push_back(at);
    instructions.push_back(in);
    at += in.words();
    if (!labels.empty() || in.info->ends() || is_call(in)) begins[at] = true;
  }
  block_of_word_.assign(words, kNone);
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    block_of_instruction_.push_back(static_cast<uint32_t>(blocks.size()));
    if (begins[word_of[i]]) {
      if (!blocks.empty()) blocks.back().end = i;
      block_of_word_[word_of[i]] = static_cast<uint32_t>(blocks.size());
      blocks.push_back({.first = i, .end = 0, .next = {}, .resumes = {}, .live = RegisterSet()});
    }
  }
  blocks.back().end = static_cast<uint32_t>(instructions.size());
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    FlowBlock& block = blocks[b];
    const Instruction& last = instructions[block.end - 1];
    for (const Arg label : labels_of(last)) block.next.push_back(block_at(label));
    if (last.info->ends()) continue;
    // The verifier has shown that code doesn't run off its end.
    if (is_call(last)) {
      block.resumes = b + 1;
    } else {
      block.next.push_back(b + 1);
    }
  }
}

void BytecodeFlow::find_live_registers() {
  for (FlowBlock& block : blocks) block.live = RegisterSet(function.register_count);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks.size(); b-- > 0;) {
      poll();
      FlowBlock& block = blocks[b];
      RegisterSet live(function.register_count);
      for (uint32_t next : block.next) live.add(blocks[next].live);
      if (block.resumes) live.add(blocks[*block.resumes].live);
      for (uint32_t i = block.end; i-- > block.first;) step_back(live, instructions[i]);
      changed |= block.live.add(live);
    }
  }
}

std::vector<RegisterSet> BytecodeFlow::live_before(const FlowBlock& block) const {
  std::vector<RegisterSet> all(block.end - block.first + 1, RegisterSet(function.register_count));
  RegisterSet& after = all.back();
  for (uint32_t next : block.next) after.add(blocks[next].live);
  if (block.resumes) after.add(blocks[*block.resumes].live);
  for (size_t i = all.size() - 1; i-- > 0;) {
    all[i] = all[i + 1];
    step_back(all[i], instructions[block.first + i]);
  }
  return all;
}

// Each block gets the piece that reaches it; where two do, it begins one.
void BytecodeFlow::find_pieces() {
  std::vector<uint32_t> piece;
  for (bool changed = true; changed;) {
    changed = false;
    poll();
    piece.assign(blocks.size(), kNone);
    auto spread = [&](uint32_t from, uint32_t number) {
      std::vector<uint32_t> open = {from};
      piece[from] = number;
      while (!open.empty()) {
        const uint32_t b = open.back();
        open.pop_back();
        for (uint32_t next : blocks[b].next) {
          if (blocks[next].begins_piece || piece[next] == number) continue;
          if (piece[next] != kNone) {
            blocks[next].begins_piece = changed = true;
            continue;
          }
          piece[next] = number;
          open.push_back(next);
        }
      }
    };
    auto begin = [&](uint32_t block, uint32_t number) {
      if (blocks[block].begins_piece || piece[block] == number) return;
      if (piece[block] != kNone) {
        blocks[block].begins_piece = changed = true;
        return;
      }
      spread(block, number);
    };
    begin(0, 0);
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].resumes) begin(*blocks[b].resumes, b + 1);
    }
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].begins_piece && piece[b] == kNone) {
        spread(b, static_cast<uint32_t>(blocks.size()) + b);
      }
    }
  }
}

}  // namespace tenon::codegen

#include "codegen/bytecode/virtual_code.h"

#include <algorithm>

#include "support/text.h"

namespace tenon::codegen {

using vm::Arg;
using vm::DimPattern;
using vm::Opcode;

Register VirtualCode::make_register(bool owns) {
  owns_.push_back(owns);
  borrows_.push_back(false);
  return register_count() - 1;
}

Arg VirtualCode::make_borrowing() {
  const Register r = make_register(/*owns=*/false);
  borrows_[r] = true;
  return Arg::borrowed(r);
}

BlockId VirtualCode::make_block() {
  blocks_.emplace_back();
  return block_count() - 1;
}

Arg VirtualCode::add_param(BlockId block, bool owns) {
  const Arg param = make(owns);
  blocks_[block].params.push_back(param.index());
  return param;
}

Arg VirtualCode::add_borrowing_param(BlockId block) {
  const Arg param = make_borrowing();
  blocks_[block].params.push_back(param.index());
  return param;
}

void VirtualCode::start(BlockId block) {
  TENON_ASSERT(ended_, "a block starts within another");
  order_.push_back(block);
  blocks_[block].loop = loop_;
  current_ = block;
  ended_ = false;
}

void VirtualCode::emit(Opcode opcode, std::initializer_list<Arg> operands,
                       std::span<const Arg> list) {
  TENON_ASSERT(!ended_, "an instruction outside of any block");
  VirtualInstruction instruction{opcode, span_, operands, 0};
  instruction.operands.insert(instruction.operands.end(), list.begin(), list.end());
  blocks_[current_].instructions.push_back(std::move(instruction));
}

void VirtualCode::get_field(Arg dst, Arg object, uint32_t index, uint32_t cell_size) {
  emit(Opcode::GetField, {dst, object, Arg::imm(int64_t{index})});
  blocks_[current_].instructions.back().cell_size = cell_size;
}

void VirtualCode::group_calls(size_t first, int64_t count) {
  std::vector<VirtualInstruction>& all = blocks_[current_].instructions;
  const auto begin = all.begin() + static_cast<ptrdiff_t>(first);
  const auto calls = std::stable_partition(
      begin, all.end(), [](const VirtualInstruction& i) { return i.opcode != Opcode::CallPacked; });
  TENON_ASSERT(all.end() - calls == count, "a group of other instructions than packed calls");
  all.insert(calls, {Opcode::Concurrent, calls->span, {Arg::imm(count)}});
}

void VirtualCode::match_shape(Arg value, std::span<const DimPattern> dims) {
  emit(Opcode::MatchShape, {value}, vm::dim_operands(dims));
}

void VirtualCode::match_tensor(Arg value, DataType dtype, std::span<const DimPattern> dims) {
  emit(Opcode::MatchTensor, {value, Arg::dtype(dtype)}, vm::dim_operands(dims));
}

void VirtualCode::match_prim_value(Arg value, const DimPattern& expected) {
  emit(Opcode::MatchPrimValue, {value}, vm::dim_operands({&expected, 1}));
}

VirtualBlock& VirtualCode::end(Exit exit) {
  TENON_ASSERT(!ended_, "a block ends twice");
  ended_ = true;
  VirtualBlock& block = blocks_[current_];
  block.exit = exit;
  block.exit_span = span_;
  return block;
}

void VirtualCode::jump(BlockId target, std::vector<Arg> args) {
  VirtualBlock& block = end(Exit::Jump);
  block.target = target;
  block.args = std::move(args);
}

void VirtualCode::branch(Arg condition, BlockId target, BlockId otherwise) {
  VirtualBlock& block = end(Exit::Branch);
  block.value = condition;
  block.target = target;
  block.otherwise = otherwise;
}

void VirtualCode::switch_on(Arg value, std::vector<SwitchCase> cases, BlockId otherwise) {
  VirtualBlock& block = end(Exit::Switch);
  block.value = value;
  block.cases = std::move(cases);
  block.otherwise = otherwise;
}

void VirtualCode::ret(Arg value) {
  end(Exit::Return).value = value;
}

void VirtualCode::self_call(std::vector<Arg> args) {
  VirtualBlock& block = end(Exit::SelfCall);
  block.target = order_.front();
  block.args = std::move(args);
}

void VirtualCode::left() {
  end(Exit::Left);
}

uint32_t VirtualCode::begin_loop(BlockId header, BlockId exit) {
  VirtualLoop loop;
  loop.header = header;
  loop.exit = exit;
  loop.parent = loop_;
  loop.depth = loop_ == kNoLoop ? 1 : loops_[loop_].depth + 1;
  loops_.push_back(loop);
  loop_ = static_cast<uint32_t>(loops_.size() - 1);
  return loop_;
}

void VirtualCode::end_loop() {
  loop_ = loops_[loop_].parent;
}

std::vector<uint32_t> VirtualCode::places() const {
  std::vector<uint32_t> places(block_count());
  for (uint32_t i = 0; i < order_.size(); ++i) places[order_[i]] = i;
  return places;
}

uint32_t VirtualCode::loop_depth(BlockId id) const {
  const uint32_t loop = blocks_[id].loop;
  return loop == kNoLoop ? 0 : loops_[loop].depth;
}

// ---- text ----

namespace {

std::string text_of(Arg arg) {
  if (!arg.is_register()) return vm::to_text(arg);
  const char* how = arg.is(vm::ArgKind::LastUse) ? "!" : arg.is(vm::ArgKind::Borrowed) ? "&" : "";
  return cat("r", arg.index(), how);
}

std::string text_of(const std::vector<Arg>& args) {
  std::string out = " (";
  for (size_t i = 0; i < args.size(); ++i) out += cat(i ? " " : "", text_of(args[i]));
  return out + ")";
}

std::string text_of(const VirtualInstruction& instruction) {
  const vm::OpcodeInfo& info = vm::info_of(instruction.opcode);
  std::string out(info.mnemonic);
  for (uint32_t i = 0; i < instruction.operands.size(); ++i) {
    out += i ? ", " : " ";
    if (info.spec_at(i).kind == vm::OperandKind::Dim) {
      out += vm::dim_text(instruction.operands[i], instruction.operands[i + 1]);
      ++i;
    } else {
      out += text_of(instruction.operands[i]);
    }
  }
  return out;
}

std::string exit_text(const VirtualBlock& block) {
  switch (block.exit) {
    case Exit::Jump:
      return cat("jump block ", block.target, text_of(block.args));
    case Exit::Branch:
      return cat("branch ", text_of(block.value), ", block ", block.target, ", block ",
                 block.otherwise);
    case Exit::Switch: {
      std::string out = cat("switch ", text_of(block.value));
      for (const SwitchCase& c : block.cases) out += cat(", ", c.value, ": block ", c.target);
      return cat(out, ", block ", block.otherwise);
    }
    case Exit::Return:
      return cat("return ", text_of(block.value));
    case Exit::SelfCall:
      return cat("self_call", text_of(block.args));
    case Exit::Left:
      break;
  }
  return "left";
}

}  // namespace

std::string to_text(const VirtualCode& code) {
  std::string out;
  for (BlockId id : code.order()) {
    const VirtualBlock& block = code.block(id);
    std::vector<Arg> params;
    for (Register r : block.params) params.push_back(Arg::reg(r));
    out += cat("block ", id, text_of(params), ":\n");
    for (const VirtualInstruction& instruction : block.instructions) {
      out += cat("  ", text_of(instruction), "\n");
    }
    out += cat("  ", exit_text(block), "\n");
  }
  return out;
}

}  // namespace tenon::codegen

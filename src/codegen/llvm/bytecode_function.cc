#include "codegen/llvm/bytecode_function.h"

#include "codegen/llvm/closure_results.h"
#include "support/poll.h"
#include "vm/isa/operand_index.h"

namespace tenon::codegen {

using vm::Arg;
using vm::CodeLayout;
using vm::Instruction;
using vm::Opcode;

namespace {

RegisterSet borrowers(const vm::FunctionUnit& function, const BytecodeFlow& flow) {
  RegisterSet out(function.register_count);
  for (uint32_t i = 0; i < function.params.size(); ++i) {
    if (function.params[i].borrowed) out.add(i);
  }
  for (const Instruction& in : flow.instructions) {
    if (vm::writes_borrowed(in)) for_each_write(in, [&](uint32_t r) { out.add(r); });
  }
  return out;
}

}  // namespace

FunctionTranslator::FunctionTranslator(BytecodeWriter& writer, uint32_t index)
    : w_(writer),
      m_(writer.m),
      function_(writer.unit.functions[index]),
      index_(index),
      first_op_(writer.first_op(index)),
      flow_(function_),
      borrowers_(borrowers(function_, flow_)),
      closure_results_(closure_results(flow_, writer.unit)),
      entry_(flow_.blocks.size()),
      now_{std::vector<Kind>(function_.register_count, Kind::None),
           RegisterSet(function_.register_count)},
      b_(writer.m.context) {}

void FunctionTranslator::translate() {
  find_kinds();
  pending_.push_back({w_.expected(index_), [this] { take_parameters(); }, at_entry()});
  if (w_.function(index_) != w_.expected(index_)) {
    pending_.push_back({w_.function(index_), [this] { check_parameters(); }, at_entry()});
  }
  while (!pending_.empty()) {
    poll();
    const Pending next = std::move(pending_.back());
    pending_.pop_back();
    write_piece(next);
  }
}

bool FunctionTranslator::returns_expected(std::vector<uint32_t>* tail_callees) {
  const Kind expected = kind_of(function_.result);
  if (!is_number(expected)) return false;
  find_kinds();
  bool all = true;
  const auto returned = [&](Kind kind) { all &= type_index_of(kind) == type_index_of(expected); };
  for (uint32_t block = 0; block < entry_.size(); ++block) {
    if (!entry_[block]) continue;
    const Instruction& last = flow_.instructions[flow_.blocks[block].end - 1];
    walk_until(block, flow_.blocks[block].end - 1);
    if (ended_) continue;
    if (last.opcode() == Opcode::Ret) {
      returned(kind_of_operand(last.arg(vm::operand(Opcode::Ret, "value"))));
    } else if (last.opcode() == Opcode::TailCall) {
      const uint32_t callee = last.arg(vm::operand(Opcode::TailCall, "callee")).index();
      returned(kind_of(w_.unit.functions[callee].result));
      tail_callees->push_back(callee);
    } else if (last.opcode() == Opcode::TailCallClosure) {
      all = false;
    }
  }
  return all;
}

// ---- the walk ----

FunctionTranslator::State FunctionTranslator::at_entry() const {
  State state{std::vector<Kind>(function_.register_count, Kind::None),
              RegisterSet(function_.register_count)};
  for (uint32_t i = 0; i < function_.params.size(); ++i) {
    state.kinds[i] = kind_of(function_.params[i].type);
    if (i >= vm::kCodeArguments && is_number(state.kinds[i])) state.stale.add(i);
  }
  return state;
}

void FunctionTranslator::find_kinds() {
  arrive(0, at_entry());
  while (!changed_.empty()) {
    const uint32_t block = changed_.back();
    changed_.pop_back();
    walk(block);
  }
}

// Joins a state with that of other ways to the block.
void FunctionTranslator::arrive(uint32_t block, const State& state) {
  const FlowBlock& target = flow_.blocks[block];
  const bool is_first = !entry_[block];
  if (is_first) entry_[block] = state;
  State& known = *entry_[block];
  bool changed = is_first;
  for (uint32_t r = 0; r < known.kinds.size(); ++r) {
    const bool is_live = target.live.has(r);
    Kind kind = state.kinds[r];
    if (!is_live && kind != Kind::Any) kind = Kind::Dead;
    Kind joined = is_first ? kind : known.kinds[r];
    if (joined != kind) joined = is_float(joined) && is_float(kind) ? Kind::Float : Kind::Any;
    changed |= joined != known.kinds[r];
    known.kinds[r] = joined;
    const bool is_stored = target.begins_piece && is_live && is_number(kind);
    if ((state.stale.has(r) || is_stored) && !known.stale.has(r)) {
      known.stale.add(r);
      changed = true;
    }
  }
  if (changed) changed_.push_back(block);
}

void FunctionTranslator::walk(uint32_t block) {
  walk_until(block, flow_.blocks[block].end);
  if (!ended_) go(block + 1, false);
}

void FunctionTranslator::walk_until(uint32_t block, uint32_t end) {
  poll();
  const FlowBlock& walked = flow_.blocks[block];
  std::vector<RegisterSet> live;
  if (writing()) live = flow_.live_before(walked);
  now_ = *entry_[block];
  ended_ = false;
  for (at_ = walked.first; at_ < end && !ended_; ++at_) {
    if (writing()) live_ = &live[at_ - walked.first];
    instruction(flow_.instructions[at_]);
  }
}

// ---- pieces ----

void FunctionTranslator::write_piece(const Pending& pending) {
  Piece piece{.function = pending.function,
              .is_apart = pending.is_apart,
              .arguments = BytecodeWriter::arguments_of(pending.function),
              .locals = std::vector<llvm::AllocaInst*>(function_.register_count)};
  piece_ = &piece;
  b_.SetInsertPoint(llvm::BasicBlock::Create(m_.context, "", piece.function));
  piece.fuel = b_.CreateAlloca(m_.i64);
  set_fuel(piece.arguments.fuel);
  now_ = pending.state;
  at_ = pending.at;
  live_ = &pending.live;
  pending.begin();
  while (!piece.open.empty()) {
    const uint32_t block = piece.open.back();
    piece.open.pop_back();
    b_.SetInsertPoint(piece.blocks[block]);
    walk(block);
  }
  piece_ = nullptr;
}

// Loads the numbers that a piece finds in the stack.
void FunctionTranslator::reload_live() {
  for (uint32_t r = 0; r < now_.kinds.size(); ++r) {
    if (!live_->has(r) || !is_number(now_.kinds[r])) continue;
    b_.CreateStore(m_.field(b_, m_.i64, home(r), 8), local(r));
  }
}

Words FunctionTranslator::parameter(uint32_t i) {
  return i < vm::kCodeArguments ? piece_->arguments.words[i] : w_.load_words(b_, home(i));
}

// Goes on with the piece that expects what the signature says, or leaves.
void FunctionTranslator::check_parameters() {
  const auto count = static_cast<uint32_t>(function_.params.size());
  llvm::Value* as_expected = b_.getTrue();
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_number(now_.kinds[i])) continue;
    llvm::Value* fits = w_.has_type(b_, parameter(i).head, type_index_of(now_.kinds[i]));
    as_expected = b_.CreateAnd(as_expected, fits);
  }
  rarely(b_.CreateNot(as_expected), [&] {
    for (uint32_t i = 0; i < std::min(count, vm::kCodeArguments); ++i) {
      w_.store_words(b_, home(i), parameter(i));
    }
    w_.leave(b_, arguments(), first_op_);
  });
  w_.jump(b_, w_.expected(index_), arguments());
}

// Goes on with the first block, where arguments are as the signature says.
void FunctionTranslator::take_parameters() {
  for (uint32_t i = 0; i < function_.params.size(); ++i) {
    if (is_number(now_.kinds[i])) {
      b_.CreateStore(parameter(i).payload, local(i));
    } else if (i < vm::kCodeArguments) {
      w_.store_words(b_, home(i), parameter(i));
    }
  }
  go(0, false);
}

llvm::Function* FunctionTranslator::piece_of(uint32_t block) {
  llvm::Function*& piece = pieces_[block];
  if (!piece) {
    piece = w_.piece(cat("f", index_, ".", flow_.blocks[block].first));
    const auto begin = [this, block] {
      reload_live();
      b_.CreateBr(block_of(block));
    };
    const FlowBlock& target = flow_.blocks[block];
    pending_.push_back({piece, begin, *entry_[block], target.first, target.live});
  }
  return piece;
}

void FunctionTranslator::go_apart(Body body) {
  State stored = store_live_numbers();
  llvm::Function* const piece = w_.piece(cat("f", index_, ".apart", at_));
  piece->setAlignment(llvm::Align(16));
  const auto begin = [this, body] {
    reload_live();
    (this->*body)(flow_.instructions[at_]);
  };
  pending_.push_back({piece, begin, std::move(stored), at_, *live_, true});
  PieceArguments values = arguments();
  for (Words& words : values.words) words = {};
  w_.jump(b_, piece, values);
}

llvm::BasicBlock* FunctionTranslator::block_of(uint32_t block) {
  llvm::BasicBlock*& made = piece_->blocks[block];
  if (!made) {
    made = new_block("");
    piece_->open.push_back(block);
  }
  return made;
}

// ---- jumps ----

// Whether the call is to stop, or to ask its host.
llvm::Value* FunctionTranslator::is_asked() {
  llvm::Value* word = w_.address(b_, piece_->arguments.state, CodeLayout::kAttention);
  llvm::LoadInst* attention = b_.CreateLoad(m_.i32, word);
  attention->setAtomic(llvm::AtomicOrdering::Monotonic);
  attention->setAlignment(llvm::Align(4));
  return b_.CreateICmpNE(attention, b_.getInt32(0));
}

void FunctionTranslator::charge_jump() {
  llvm::Value* fuel = b_.CreateSub(arguments().fuel, b_.getInt64(1));
  set_fuel(fuel);
  llvm::Value* is_out_of_fuel = b_.CreateICmpSLT(fuel, b_.getInt64(0));
  llvm::Value* stops = b_.CreateOr(is_out_of_fuel, is_asked());
  rarely(stops, [&] { run(&vm::CodeRuntime::attend, b_.getInt64(0)); });
}

void FunctionTranslator::go(uint32_t block, bool taken) {
  ended_ = true;
  if (!writing()) return arrive(block, now_);
  const FlowBlock& target = flow_.blocks[block];
  if (taken && target.first <= at_) charge_jump();
  const RegisterSet stale = now_.stale;
  for (uint32_t r = 0; r < now_.kinds.size(); ++r) {
    if (!is_number(now_.kinds[r]) || !target.live.has(r)) continue;
    const Kind kind = entry_[block]->kinds[r];
    if (target.begins_piece || kind == Kind::Any) {
      store(r);
    } else if (kind != now_.kinds[r]) {
      b_.CreateStore(payload(Arg::reg(r), kind), local(r));
    }
  }
  now_.stale = stale;  // for other ways from here
  if (target.begins_piece) {
    PieceArguments values = arguments();
    for (Words& words : values.words) words = {};
    w_.jump(b_, piece_of(block), values);
  } else {
    b_.CreateBr(block_of(block));
  }
}

llvm::BasicBlock* FunctionTranslator::edge(uint32_t block, bool taken) {
  if (!writing()) {
    go(block, taken);
    return nullptr;
  }
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  llvm::BasicBlock* const made = new_block("edge");
  b_.SetInsertPoint(made);
  go(block, taken);
  return made;
}

// Goes on after this instruction if the condition holds.
void FunctionTranslator::branch(llvm::Value* condition, uint32_t otherwise) {
  const uint32_t next = flow_.instructions.size() > at_ + 1
                            ? flow_.block_beginning(at_ + 1)
                            : otherwise;  // the verifier has shown that there is a next one
  llvm::BasicBlock* const holds = edge(next, false);
  llvm::BasicBlock* const fails = edge(otherwise, true);
  if (writing()) b_.CreateCondBr(condition, holds, fails);
}

void FunctionTranslator::return_from(const Instruction& in) {
  const Arg value = in.arg(vm::operand(Opcode::Ret, "value"));
  const Words words = take(value, value.is_register());
  clear_frame();
  return_words(words);
}

// The caller goes on with this function's base, and finds its own a known distance below.
void FunctionTranslator::return_words(Words words) {
  ended_ = true;
  if (!writing()) return;
  PieceArguments values = arguments();
  llvm::Value* resume = m_.field(b_, m_.pointer, values.frame, CodeLayout::kFrameResume);
  values.frame = w_.address(b_, values.frame, CodeLayout::kFrameBytes);
  for (Words& w : values.words) w = {};
  values.words[0] = words;
  w_.jump(b_, resume, values);
}

bool returns_expected(BytecodeWriter& w, uint32_t index, std::vector<uint32_t>* tail_callees) {
  return FunctionTranslator(w, index).returns_expected(tail_callees);
}

void write_bytecode_function(BytecodeWriter& w, uint32_t index) {
  FunctionTranslator(w, index).translate();
}

}  // namespace tenon::codegen

// Calls of bytecode, and instructions that the machine runs.
#include <algorithm>

#include "codegen/llvm/bytecode_function.h"
#include "object/type_index.h"
#include "vm/isa/operand_index.h"

namespace tenon::codegen {

using vm::Arg;
using vm::ArgKind;
using vm::CodeExit;
using vm::CodeLayout;
using vm::Instruction;
using vm::Opcode;
using vm::OperandRole;

namespace {

// The destination is the first operand of both calls.
static_assert(vm::operand(Opcode::Call, "dst") == 0 &&
              vm::operand(Opcode::CallClosure, "dst") == 0);

// The closure that an instruction of either kind calls.
Arg closure_operand(const Instruction& in) {
  return in.arg(in.opcode() == Opcode::CallClosure
                    ? vm::operand(Opcode::CallClosure, "callee")
                    : vm::operand(Opcode::TailCallClosure, "callee"));
}

// The index of the function that a call or tail call names.
uint32_t callee_index(const Instruction& in) {
  return in
      .arg(in.opcode() == Opcode::Call ? vm::operand(Opcode::Call, "callee")
                                       : vm::operand(Opcode::TailCall, "callee"))
      .index();
}

}  // namespace

// The registers from the base on, in bytes, for which a call must have room; for a tail call, whose
// arguments the machine gathers above both frames, unless they are in place.
int64_t FunctionTranslator::room_of(const Instruction& in) const {
  const vm::FunctionUnit& callee = w_.unit.functions[callee_index(in)];
  const size_t own = function_.register_count, others = callee.register_count;
  size_t registers = 0;
  if (in.opcode() == Opcode::Call) {
    registers = own + others;
  } else if (callee_index(in) != index_ || !vm::passes_in_place(in)) {
    registers = std::max(own, others) + callee.params.size();
  }
  return static_cast<int64_t>(registers) * CodeLayout::kRegisterBytes;
}

// Before a call, takes its unit of fuel and makes sure that there is room for registers and, unless
// the call reuses this frame, for another frame. Whatever speaks against it is found by one test.
void FunctionTranslator::charge_call(const Instruction& in) {
  if (!writing()) return;
  const PieceArguments before = arguments();
  llvm::Value* fuel = b_.CreateSub(before.fuel, b_.getInt64(1));
  llvm::Value* stops = b_.CreateOr(is_asked(), b_.CreateICmpSLT(fuel, b_.getInt64(0)));
  if (const int64_t room = room_of(in)) {
    llvm::Value* limit = w_.load_state(b_, m_.pointer, before, CodeLayout::kRegisterLimit);
    stops = b_.CreateOr(stops, b_.CreateICmpUGT(w_.address(b_, before.base, room), limit));
  }
  if (in.opcode() == Opcode::Call) {
    llvm::Value* frame = w_.address(b_, before.frame, -CodeLayout::kFrameBytes);
    llvm::Value* frame_limit = w_.load_state(b_, m_.pointer, before, CodeLayout::kFrameLimit);
    stops = b_.CreateOr(stops, b_.CreateICmpULT(frame, frame_limit));
  }
  rarely(stops, [&] { go_apart(&FunctionTranslator::charge_in_machine); });
  set_fuel(fuel);
}

// The same by the machine, and what follows.
void FunctionTranslator::charge_in_machine(const Instruction& in) {
  const bool is_tail = in.opcode() == Opcode::TailCall;
  const auto room = static_cast<uint64_t>(room_of(in));
  run(&vm::CodeRuntime::charge_call, b_.getInt64(is_tail ? room : room | vm::kNewFrame));
  is_tail ? enter_by_tail_call(in) : enter(in);
}

// The arguments' words, owned. A register that several arguments read is moved by the last of them.
std::vector<Words> FunctionTranslator::take_arguments(const Instruction& in) {
  std::vector<Words> words;
  const std::span<const vm::Word> list = in.list();
  for (size_t i = 0; i < list.size(); ++i) {
    const Arg operand(list[i]);
    bool is_last = false, is_read_again = false;
    for (size_t k = 0; operand.is_register() && k < list.size(); ++k) {
      const Arg other(list[k]);
      if (!other.is_register() || other.index() != operand.index()) continue;
      is_last |= other.is(ArgKind::LastUse);
      is_read_again |= k > i;
    }
    words.push_back(take(operand, is_last && !is_read_again));
  }
  return words;
}

uint32_t FunctionTranslator::block_after_call() const {
  return at_ + 1 < flow_.instructions.size() ? flow_.block_beginning(at_ + 1) : 0;
}

// The registers with values that are needed after a call.
RegisterSet FunctionTranslator::live_across(const Instruction& in) const {
  RegisterSet live = flow_.blocks[block_after_call()].live;
  if (!in.arg(0).is_none()) live.remove(in.arg(0).index());
  return live;
}

// Stores the numbers that are needed after a call. Of others, which a piece apart finds in the
// stack, nothing is left there, as the piece after the call expects.
void FunctionTranslator::keep_across(const Instruction& in) {
  const RegisterSet live = live_across(in);
  for (uint32_t r = 0; r < now_.kinds.size(); ++r) {
    if (!is_number(now_.kinds[r])) continue;
    live.has(r) ? store(r) : clear(r);
  }
}

FunctionTranslator::Kind FunctionTranslator::expected_result(const Instruction& in) const {
  if (in.opcode() == Opcode::CallClosure) {
    const auto result = closure_results_.find(at_);
    return result == closure_results_.end() ? Kind::Any : result->second;
  }
  return kind_of(w_.unit.functions[callee_index(in)].result);
}

// The piece that goes on after this call.
llvm::Function* FunctionTranslator::landing(const Instruction& in) {
  llvm::Function*& piece = landings_[at_];
  if (!piece) {
    piece = w_.resuming_piece(cat("f", index_, ".after", at_), op());
    const auto begin = [this] {
      piece_->arguments.base = below(piece_->arguments.base);
      reload_live();
      receive_result(flow_.instructions[at_]);
    };
    pending_.push_back({piece, begin, now_, at_, live_across(in)});
  }
  return piece;
}

// The result of a call is in the piece's first words.
void FunctionTranslator::receive_result(const Instruction& in) {
  const Arg destination = in.arg(0);
  const Kind expected = expected_result(in);
  const Words result = writing() ? piece_->arguments.words[0] : Words();
  if (destination.is_none()) {
    if (writing()) release(result);
  } else if (is_number(expected)) {
    const uint32_t r = destination.index();
    drop_old(r);
    if (writing()) {
      const bool is_known = in.opcode() == Opcode::Call && w_.returns_expected(callee_index(in));
      if (!is_known) check_result(r, expected, result);
      b_.CreateStore(result.payload, local(r));
    }
    now_.kinds[r] = expected;
  } else {
    define(destination.index(), result);
  }
  go(block_after_call(), false);
}

// Goes on if the result is of that kind; otherwise bytecode goes on behind the call.
void FunctionTranslator::check_result(uint32_t r, Kind expected, Words result) {
  llvm::Value* fits = w_.has_type(b_, result.head, type_index_of(expected));
  rarely(b_.CreateNot(fits), [&] {
    w_.store_words(b_, home(r), result);
    w_.leave(b_, arguments(), op() + 1);
  });
}

int64_t FunctionTranslator::own_bytes() const {
  return int64_t{function_.register_count} * CodeLayout::kRegisterBytes;
}

// The base of a function that this one calls.
llvm::Value* FunctionTranslator::above(llvm::Value* base) {
  return w_.address(b_, base, own_bytes());
}

// This function's, from the base of one that it has called.
llvm::Value* FunctionTranslator::below(llvm::Value* base) {
  return w_.address(b_, base, -own_bytes());
}

// The arguments of the piece of a function with the registers from `base` on.
PieceArguments FunctionTranslator::with_arguments(const std::vector<Words>& words,
                                                  llvm::Value* base) {
  PieceArguments values = arguments();
  for (size_t i = 0; i < vm::kCodeArguments; ++i) {
    values.words[i] = i < words.size() ? words[i] : Words();
  }
  for (size_t i = vm::kCodeArguments; i < words.size(); ++i) {
    w_.store_words(b_, w_.address(b_, base, static_cast<int64_t>(i) * CodeLayout::kRegisterBytes),
                   words[i]);
  }
  return values;
}

// Ends the block: the piece, of a function that is called, has its registers above this function's.
void FunctionTranslator::jump_above(PieceArguments values, llvm::Value* frame,
                                    llvm::Function* resume, llvm::Value* piece) {
  b_.CreateStore(resume, w_.address(b_, frame, CodeLayout::kFrameResume));
  b_.CreateStore(values.base, w_.address(b_, frame, CodeLayout::kFrameBase));
  values.base = above(values.base);
  values.frame = frame;
  w_.jump(b_, piece, values);
}

void FunctionTranslator::call(const Instruction& in) {
  charge_call(in);
  enter(in);
}

llvm::Function* FunctionTranslator::callee_piece(const Instruction& in) const {
  const uint32_t callee = callee_index(in);
  const std::vector<vm::Param>& params = w_.unit.functions[callee].params;
  for (size_t i = 0; i < params.size(); ++i) {
    const Kind kind = kind_of(params[i].type);
    const Kind given = kind_of_operand(Arg(in.list()[i]));
    if (is_number(kind) && type_index_of(given) != type_index_of(kind)) return w_.function(callee);
  }
  return w_.expected(callee);
}

std::vector<Words> FunctionTranslator::arguments_for(llvm::Function* callee,
                                                     const Instruction& in) {
  std::vector<Words> words = take_arguments(in);
  if (callee == w_.function(callee_index(in))) return words;
  const std::vector<vm::Param>& params = w_.unit.functions[callee_index(in)].params;
  for (size_t i = 0; i < std::min<size_t>(words.size(), vm::kCodeArguments); ++i) {
    if (is_number(kind_of(params[i].type))) words[i].head = nullptr;
  }
  return words;
}

void FunctionTranslator::enter(const Instruction& in) {
  llvm::Function* const callee = callee_piece(in);
  const std::vector<Words> words = arguments_for(callee, in);
  keep_across(in);
  if (!writing()) return receive_result(in);
  ended_ = true;
  const PieceArguments values = with_arguments(words, above(piece_->arguments.base));
  jump_above(values, w_.address(b_, values.frame, -CodeLayout::kFrameBytes), landing(in), callee);
}

void FunctionTranslator::tail_call(const Instruction& in) {
  charge_call(in);
  enter_by_tail_call(in);
}

void FunctionTranslator::enter_by_tail_call(const Instruction& in) {
  llvm::Function* const callee = callee_piece(in);
  const std::vector<Words> words = arguments_for(callee, in);
  clear_frame();
  ended_ = true;
  if (!writing()) return;
  w_.jump(b_, callee, with_arguments(words, piece_->arguments.base));
}

// What the machine's functions read must be in the stack; registers at their last use are None
// afterwards (cleared_by_machine).
void FunctionTranslator::used_by_machine(const Instruction& in) {
  for_each_read(in, [&](Arg a, OperandRole) { store_if_number(a.index()); });
}

void FunctionTranslator::cleared_by_machine(const Instruction& in) {
  for_each_read(in, [&](Arg a, OperandRole role) {
    if (!a.is(ArgKind::LastUse) || role != OperandRole::ReadsValue) return;
    now_.kinds[a.index()] = Kind::None;
    now_.stale.remove(a.index());
  });
}

void FunctionTranslator::run_in_machine(const Instruction& in) {
  used_by_machine(in);
  if (writing()) {
    run(&vm::CodeRuntime::run, b_.getInt64(static_cast<uint64_t>(in.opcode())));
  }
  cleared_by_machine(in);
  const Kind result = in.info->writes_integers()  ? Kind::Int
                      : in.info->writes_boolean() ? Kind::Bool
                                                  : Kind::Any;
  for_each_write(in, [&](uint32_t r) {
    now_.kinds[r] = result;
    now_.stale.remove(r);
    if (!is_number(result)) return;
    now_.stale.add(r);
    if (writing()) b_.CreateStore(m_.field(b_, m_.i64, home(r), 8), local(r));
  });
  if (in.info->ends()) {
    if (writing()) b_.CreateUnreachable();
    ended_ = true;
  }
}

// The machine runs the calls of the group. If a jump leads into it, compiled code runs them in
// order.
void FunctionTranslator::concurrent(const Instruction& in) {
  const auto count = static_cast<uint32_t>(in.arg(0).value());
  if (flow_.block_beginning(at_ + 1) != flow_.block_beginning(at_ + count + 1)) return;
  const auto calls = std::span(flow_.instructions).subspan(at_ + 1, count);
  for (const Instruction& call : calls) used_by_machine(call);
  run_in_machine(in);
  for (const Instruction& call : calls) cleared_by_machine(call);
  at_ += count;
}

// Where the code goes on once the machine has prepared the call of a closure.
FunctionTranslator::ClosureOutcomes FunctionTranslator::closure_outcomes(llvm::Value* exit) {
  llvm::BasicBlock* const failed = new_block("failed");
  const ClosureOutcomes to{new_block("entered"), new_block("done")};
  llvm::SwitchInst* cases = b_.CreateSwitch(exit, failed, 2);
  cases->addCase(b_.getInt32(static_cast<uint32_t>(CodeExit::Left)), to.entered);
  cases->addCase(b_.getInt32(static_cast<uint32_t>(CodeExit::Returned)), to.done);
  b_.SetInsertPoint(failed);
  fail();
  return to;
}

// Whether code for a direct call is to be written.
bool FunctionTranslator::is_direct_call(const Instruction& in) const {
  return writing() && in.list().size() <= vm::kCodeArguments &&
         kind_of_operand(closure_operand(in)) == Kind::Any;
}

// A closure that the code can call itself: one of this program, under the limits in force, whose
// function takes few arguments, none of the captures being a tensor, which may have to be made
// read-only. Otherwise, and where something speaks against a call at once, control goes to
// `machine`.
FunctionTranslator::DirectClosure FunctionTranslator::direct_closure(const Instruction& in,
                                                                     llvm::BasicBlock* machine) {
  const bool is_tail = in.opcode() == Opcode::TailCallClosure;
  const Arg callee = closure_operand(in);
  const size_t arguments_count = in.list().size();
  auto require = [&](llvm::Value* condition, const char* name) {
    llvm::BasicBlock* const next = new_block(name);
    b_.CreateCondBr(condition, next, machine);
    b_.SetInsertPoint(next);
  };
  const PieceArguments before = arguments();
  DirectClosure made;
  made.words = w_.load_words(b_, home(callee.index()));
  require(w_.has_type(b_, made.words.head, TypeIndex::Function), "function");
  llvm::Value* closure = b_.CreateIntToPtr(made.words.payload, m_.pointer);
  require(b_.CreateICmpEQ(m_.field(b_, m_.pointer, closure, CodeLayout::kFunctionCall),
                          w_.closure_call(b_, before)),
          "closure");
  llvm::Value* code = m_.field(b_, m_.pointer, closure, CodeLayout::kClosureCode);
  llvm::Value* size = m_.field(b_, m_.i64, closure, CodeLayout::kClosureSize);
  llvm::Value* params =
      b_.CreateZExt(m_.field(b_, m_.i32, code, CodeLayout::kCodeClosureParams), m_.i64);
  llvm::Value* registers =
      b_.CreateZExt(m_.field(b_, m_.i32, code, CodeLayout::kCodeRegisters), m_.i64);
  if (is_tail) {  // as much as room_of wants
    registers = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, registers,
                                         b_.getInt64(function_.register_count));
    registers = b_.CreateAdd(registers, params);
  }
  llvm::Value* top =
      b_.CreateInBoundsGEP(m_.i8, is_tail ? before.base : above(before.base),
                           b_.CreateMul(registers, b_.getInt64(CodeLayout::kRegisterBytes)));
  made.fuel = b_.CreateSub(before.fuel, b_.getInt64(1));
  made.frame = w_.address(b_, before.frame, is_tail ? 0 : -CodeLayout::kFrameBytes);
  auto is_state = [&](int64_t of_closure, int64_t of_state) {
    return b_.CreateICmpEQ(m_.field(b_, m_.pointer, closure, of_closure),
                           w_.load_state(b_, m_.pointer, before, of_state));
  };
  llvm::Value* fits = is_state(CodeLayout::kClosureProgram, CodeLayout::kRunning);
  for (llvm::Value* condition :
       {is_state(CodeLayout::kClosureAccount, CodeLayout::kAccount),
        b_.CreateICmpEQ(b_.CreateAdd(size, b_.getInt64(arguments_count)), params),
        b_.CreateICmpSGE(made.fuel, b_.getInt64(0)), b_.CreateNot(is_asked()),
        b_.CreateICmpULE(top, w_.load_state(b_, m_.pointer, before, CodeLayout::kRegisterLimit)),
        b_.CreateICmpUGE(made.frame,
                         w_.load_state(b_, m_.pointer, before, CodeLayout::kFrameLimit))}) {
    fits = b_.CreateAnd(fits, condition);
  }
  require(fits, "fits");
  made.piece = w_.function(b_, m_.field(b_, m_.i32, code, CodeLayout::kCodeIndex));

  // By the number of captures, which all go into the callee's first words.
  const size_t most = vm::kCodeArguments - arguments_count;
  llvm::BasicBlock* const ready = new_block("captured");
  llvm::SwitchInst* sizes = b_.CreateSwitch(size, machine, static_cast<unsigned>(most + 1));
  std::vector<llvm::BasicBlock*> ways;
  std::vector<Words> captures;
  for (size_t n = 0; n <= most; ++n) {
    llvm::BasicBlock* const way = new_block("captures");
    sizes->addCase(b_.getInt64(n), way);
    b_.SetInsertPoint(way);
    if (n > 0) {
      // The first n - 1 are loaded again, which LLVM sees.
      llvm::Value* plain = b_.getTrue();
      for (size_t i = 0; i < n; ++i) {
        const Words words =
            w_.load_words(b_, w_.address(b_, closure,
                                         CodeLayout::kClosureCaptures +
                                             static_cast<int64_t>(i) * CodeLayout::kRegisterBytes));
        plain = b_.CreateAnd(plain, b_.CreateNot(is_tensor(words)));
        captures.push_back(words);
      }
      b_.CreateCondBr(plain, ready, machine);
    } else {
      b_.CreateBr(ready);
    }
    ways.push_back(b_.GetInsertBlock());
  }
  b_.SetInsertPoint(ready);
  made.size = b_.CreatePHI(m_.i64, static_cast<unsigned>(ways.size()));
  for (size_t n = 0; n < ways.size(); ++n) made.size->addIncoming(b_.getInt64(n), ways[n]);
  for (size_t i = 0; i < most; ++i) {
    llvm::PHINode* head = b_.CreatePHI(m_.i64, static_cast<unsigned>(ways.size()));
    llvm::PHINode* payload = b_.CreatePHI(m_.i64, static_cast<unsigned>(ways.size()));
    for (size_t n = 0; n < ways.size(); ++n) {
      const Words words = i < n ? captures[n * (n - 1) / 2 + i] : w_.none();
      head->addIncoming(words.head, ways[n]);
      payload->addIncoming(words.payload, ways[n]);
    }
    made.captures.push_back({head, payload});
  }
  return made;
}

// Takes the arguments and goes to the closure's code.
void FunctionTranslator::enter_closure(const Instruction& in, const DirectClosure& closure) {
  set_fuel(closure.fuel);
  for (const Words& words : closure.captures) w_.retain(b_, words);
  const std::vector<Words> given = take_arguments(in);
  const Arg callee = closure_operand(in);
  const bool is_taken = std::ranges::any_of(
      in.list(), [&](vm::Word word) { return Arg(word) == Arg::last(callee.index()); });
  if (callee.is(ArgKind::LastUse) && !is_taken) {
    clear(callee.index());
    release(closure.words);
  }
  const bool is_tail = in.opcode() == Opcode::TailCallClosure;
  is_tail ? clear_frame() : keep_across(in);
  PieceArguments values = arguments();
  // Word i is capture i, or the argument after the captures.
  for (size_t i = 0; i < vm::kCodeArguments; ++i) {
    Words& to = values.words[i];
    to = i < closure.captures.size() ? closure.captures[i] : Words();
    for (size_t k = 0; k < given.size() && k <= i; ++k) {
      llvm::Value* is_it = b_.CreateICmpEQ(closure.size, b_.getInt64(i - k));
      to.head = to.head ? b_.CreateSelect(is_it, given[k].head, to.head) : given[k].head;
      to.payload =
          to.payload ? b_.CreateSelect(is_it, given[k].payload, to.payload) : given[k].payload;
    }
  }
  if (is_tail) {
    w_.jump(b_, closure.piece, values);
  } else {
    jump_above(values, closure.frame, landing(in), closure.piece);
  }
}

// Calls a closure without the machine where that is possible.
void FunctionTranslator::call_closure_directly(const Instruction& in, Body in_machine) {
  ended_ = true;
  llvm::BasicBlock* const machine = new_block("by_machine");
  const DirectClosure direct = direct_closure(in, machine);
  llvm::BasicBlock* const entering = b_.GetInsertBlock();
  b_.SetInsertPoint(machine);
  go_apart(in_machine);
  b_.SetInsertPoint(entering);
  enter_closure(in, direct);
}

void FunctionTranslator::call_closure(const Instruction& in) {
  constexpr Body kInMachine = &FunctionTranslator::call_closure_in_machine;
  is_direct_call(in) ? call_closure_directly(in, kInMachine) : call_closure_in_machine(in);
}

void FunctionTranslator::call_closure_in_machine(const Instruction& in) {
  used_by_machine(in);
  llvm::Value* exit = nullptr;
  if (writing()) {
    exit = w_.call_runtime(b_, arguments(), &vm::CodeRuntime::call_closure, op(), b_.getInt64(0));
    reload_fuel();
  }
  cleared_by_machine(in);
  keep_across(in);
  if (!writing()) return receive_result(in);
  ended_ = true;
  llvm::Function* const resume = landing(in);
  const auto [entered, done] = closure_outcomes(exit);
  b_.SetInsertPoint(done);
  PieceArguments values = with_arguments({}, piece_->arguments.base);
  values.base = above(values.base);
  values.words[0] = w_.load_words(b_, w_.address(b_, values.state, CodeLayout::kValue));
  w_.jump(b_, resume, values);
  b_.SetInsertPoint(entered);
  values = with_arguments({}, piece_->arguments.base);
  jump_above(values, w_.address(b_, values.frame, -CodeLayout::kFrameBytes), resume,
             w_.load_state(b_, m_.pointer, values, CodeLayout::kEntry));
}

void FunctionTranslator::tail_call_closure(const Instruction& in) {
  constexpr Body kInMachine = &FunctionTranslator::tail_call_closure_in_machine;
  is_direct_call(in) ? call_closure_directly(in, kInMachine) : tail_call_closure_in_machine(in);
}

void FunctionTranslator::tail_call_closure_in_machine(const Instruction& in) {
  ended_ = true;
  used_by_machine(in);
  if (!writing()) return;
  llvm::Value* exit =
      w_.call_runtime(b_, arguments(), &vm::CodeRuntime::tail_call_closure, op(), b_.getInt64(0));
  reload_fuel();
  const auto [entered, done] = closure_outcomes(exit);
  b_.SetInsertPoint(entered);
  const PieceArguments values = with_arguments({}, piece_->arguments.base);
  w_.jump(b_, w_.load_state(b_, m_.pointer, values, CodeLayout::kEntry), values);
  // The function wasn't the program's own: the machine has called it and cleared the frame.
  b_.SetInsertPoint(done);
  return_words(w_.load_words(b_, w_.address(b_, piece_->arguments.state, CodeLayout::kValue)));
}

}  // namespace tenon::codegen

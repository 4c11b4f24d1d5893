// Registers while a function is translated, and the places at which its code leaves.
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "codegen/llvm/bytecode_function.h"
#include "object/type_index.h"

namespace tenon::codegen {

using vm::Arg;
using vm::ArgKind;
using vm::CodeExit;
using vm::CodeLayout;

namespace {

// From so many values on, the machine clears a frame.
constexpr size_t kClearedInCode = 4;

}  // namespace

int32_t type_index_of(RegisterKind kind) {
  switch (kind) {
    case RegisterKind::Int:
      return TypeIndex::Int;
    case RegisterKind::Bool:
      return TypeIndex::Bool;
    case RegisterKind::RawFloat:
    case RegisterKind::Float:
      return TypeIndex::Float;
    default:
      return TypeIndex::None;
  }
}

PieceArguments FunctionTranslator::arguments() const {
  PieceArguments now = piece_->arguments;
  now.fuel = const_cast<Builder&>(b_).CreateLoad(m_.i64, piece_->fuel);
  return now;
}

llvm::Value* FunctionTranslator::home(uint32_t r) {
  return w_.address(b_, piece_->arguments.base, int64_t{r} * CodeLayout::kRegisterBytes);
}

llvm::AllocaInst* FunctionTranslator::local(uint32_t r) {
  llvm::AllocaInst*& made = piece_->locals[r];
  if (!made) {
    llvm::BasicBlock& first = piece_->function->getEntryBlock();
    made = Builder(&first, first.begin()).CreateAlloca(m_.i64);
  }
  return made;
}

// With a branch: a selection would add to the time for which the next operation waits.
llvm::Value* FunctionTranslator::one_nan(llvm::Value* bits) {
  llvm::Value* value = b_.CreateBitCast(bits, b_.getDoubleTy());
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  llvm::BasicBlock* nan = nullptr;
  rarely(b_.CreateFCmpUNO(value, value), [&] { nan = b_.GetInsertBlock(); });
  llvm::PHINode* one = b_.CreatePHI(m_.i64, 2);
  one->addIncoming(bits, before);
  one->addIncoming(b_.getInt64(std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN())),
                   nan);
  return one;
}

llvm::Value* FunctionTranslator::payload(uint32_t r) {
  return payload(Arg::reg(r), Kind::Float);
}

llvm::Value* FunctionTranslator::payload(Arg number, Kind as) {
  if (!writing()) return nullptr;
  if (const auto constant = constant_number(number)) {
    return b_.getInt64(static_cast<uint64_t>(constant->second));
  }
  const uint32_t r = number.index();
  llvm::Value* bits = b_.CreateLoad(m_.i64, local(r));
  return now_.kinds[r] == Kind::RawFloat && as != Kind::RawFloat ? one_nan(bits) : bits;
}

void FunctionTranslator::set_fuel(llvm::Value* fuel) {
  b_.CreateStore(fuel, piece_->fuel);
}

void FunctionTranslator::reload_fuel() {
  set_fuel(w_.load_state(b_, m_.i64, piece_->arguments, CodeLayout::kFuel));
}

llvm::BasicBlock* FunctionTranslator::new_block(const char* name) const {
  return llvm::BasicBlock::Create(m_.context, name, piece_->function);
}

// ---- leaving ----

void FunctionTranslator::fail() {
  b_.CreateRet(b_.getInt32(static_cast<uint32_t>(CodeExit::Failed)));
}

FunctionTranslator::State FunctionTranslator::store_live_numbers() {
  State before = now_;
  for (uint32_t r = 0; r < now_.kinds.size(); ++r) {
    if (live_->has(r)) store_if_number(r);
  }
  return std::exchange(now_, std::move(before));
}

void FunctionTranslator::leave() {
  store_live_numbers();
  w_.leave(b_, arguments(), op());
}

void FunctionTranslator::leave_unless(llvm::Value* condition) {
  if (writing()) rarely(b_.CreateNot(condition), [this] { leave(); });
}

void FunctionTranslator::leave_always() {
  if (writing() && !ended_) leave();
  ended_ = true;
}

void FunctionTranslator::run(vm::CodeFunction vm::CodeRuntime::*function, llvm::Value* extra) {
  llvm::Value* exit = w_.call_runtime(b_, arguments(), function, op(), extra);
  rarely(b_.CreateICmpNE(exit, b_.getInt32(static_cast<uint32_t>(CodeExit::Returned))),
         [this] { fail(); });
  reload_fuel();
}

void FunctionTranslator::release(Words words) {
  llvm::Value* is_object = w_.is_object(b_, words.head);
  llvm::BasicBlock* const object = new_block("release");
  llvm::BasicBlock* const shared = new_block("shared");
  llvm::BasicBlock* const last = new_block("last");
  llvm::BasicBlock* const next = new_block("released");
  b_.CreateCondBr(is_object, object, next);
  // The same steps as in object/object.h. The only reference there is needs no atomic subtraction.
  b_.SetInsertPoint(object);
  llvm::Value* counts = b_.CreateIntToPtr(words.payload, m_.pointer);
  llvm::LoadInst* now = b_.CreateAlignedLoad(m_.i64, counts, llvm::Align(8));
  now->setAtomic(llvm::AtomicOrdering::Acquire);
  b_.CreateCondBr(b_.CreateICmpEQ(now, b_.getInt64(CodeLayout::kCountsOfNew)), last, shared);
  b_.SetInsertPoint(shared);
  llvm::Value* before = b_.CreateAtomicRMW(llvm::AtomicRMWInst::Sub, counts, b_.getInt64(1),
                                           llvm::Align(8), llvm::AtomicOrdering::Release);
  // One comparison covers a count of 1 and the saturated ones.
  llvm::Value* strong = b_.CreateSub(b_.CreateTrunc(before, m_.i32), b_.getInt32(2));
  b_.CreateCondBr(b_.CreateICmpUGE(strong, b_.getInt32(CodeLayout::kSaturated - 2)), last, next);
  b_.SetInsertPoint(last);
  llvm::PHINode* held = b_.CreatePHI(m_.i64, 2);
  held->addIncoming(now, object);
  held->addIncoming(before, shared);
  b_.CreateStore(held, w_.address(b_, piece_->arguments.state, CodeLayout::kValue));
  w_.call_runtime(b_, arguments(), &vm::CodeRuntime::released, op(), words.payload);
  reload_fuel();
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

// ---- registers ----

void FunctionTranslator::store(uint32_t r) {
  now_.stale.add(r);
  if (!writing() || piece_->is_apart) return;  // before a piece apart, all were stored
  w_.store_words(b_, home(r), w_.number(type_index_of(now_.kinds[r]), payload(r)));
}

void FunctionTranslator::store_if_number(uint32_t r) {
  if (is_number(now_.kinds[r])) store(r);
}

void FunctionTranslator::clear(uint32_t r) {
  if (writing() && (now_.stale.has(r) || now_.kinds[r] == Kind::Any)) {
    w_.store_words(b_, home(r), w_.none());
  }
  now_.stale.remove(r);
  now_.kinds[r] = Kind::None;
}

void FunctionTranslator::drop_old(uint32_t r) {
  if (now_.kinds[r] != Kind::Any) return;
  if (borrowers_.has(r)) return clear(r);
  Words old;
  if (writing()) old = w_.load_words(b_, home(r));
  clear(r);
  if (writing()) release(old);
}

void FunctionTranslator::define(uint32_t r, Kind kind, llvm::Value* payload) {
  drop_old(r);
  now_.kinds[r] = kind;
  if (writing()) b_.CreateStore(payload, local(r));
}

void FunctionTranslator::define(Arg destination, Kind kind, llvm::Value* payload) {
  if (!destination.is_none()) define(destination.index(), kind, payload);
}

void FunctionTranslator::define(uint32_t r, Words owned) {
  drop_old(r);
  now_.stale.remove(r);
  now_.kinds[r] = Kind::Any;
  if (writing()) w_.store_words(b_, home(r), owned);
}

std::optional<std::pair<RegisterKind, int64_t>> FunctionTranslator::constant_number(
    Arg operand) const {
  if (operand.is(ArgKind::Immediate)) return {{Kind::Int, operand.value()}};
  if (!operand.is(ArgKind::Constant)) return {};
  const Any& value = w_.unit.constants[operand.index()].value;
  switch (value.type_index) {
    case TypeIndex::Int:
      return {{Kind::Int, value.v.i}};
    case TypeIndex::Bool:
      return {{Kind::Bool, value.v.i}};
    case TypeIndex::Float:
      return {{std::isnan(value.v.f) ? Kind::Float : Kind::RawFloat, value.v.i}};
    default:
      return {};
  }
}

Words FunctionTranslator::take(Arg operand, bool is_last) {
  if (const auto number = constant_number(operand)) {
    return w_.number(type_index_of(number->first),
                     b_.getInt64(static_cast<uint64_t>(number->second)));
  }
  if (operand.is(ArgKind::Constant)) {
    if (!writing()) return {};
    w_.call_runtime(b_, arguments(), &vm::CodeRuntime::constant, op(),
                    b_.getInt64(operand.index()));
    return w_.load_words(b_, w_.address(b_, piece_->arguments.state, CodeLayout::kValue));
  }
  if (!operand.is_register()) return w_.none();
  const uint32_t r = operand.index();
  const Kind kind = now_.kinds[r];
  Words words = w_.none();
  if (is_number(kind)) {
    words = w_.number(type_index_of(kind), payload(r));
  } else if (kind == Kind::Any && writing()) {
    words = w_.load_words(b_, home(r));
    if (operand.is(ArgKind::Borrowed)) {
      if (!borrowers_.has(r)) words.head = w_.borrowed(b_, words.head);
    } else if (!is_last) {
      w_.retain(b_, words);
    }
  }
  if (is_last) clear(r);
  return words;
}

RegisterKind FunctionTranslator::kind_of_operand(Arg operand) const {
  if (const auto number = constant_number(operand)) return number->first;
  return operand.is_register() ? now_.kinds[operand.index()] : Kind::Any;
}

llvm::Value* FunctionTranslator::integer(Arg operand) {
  const bool is_known = kind_of_operand(operand) != Kind::Any;
  llvm::Value* value = integer_up_to(operand, TypeIndex::Int);
  if (is_known || ended_) return value;
  const uint32_t r = operand.index();
  if (writing()) b_.CreateStore(value, local(r));
  now_.kinds[r] = Kind::Int;
  now_.stale.add(r);
  return value;
}

llvm::Value* FunctionTranslator::integer_or_boolean(Arg operand) {
  static_assert(TypeIndex::Bool == TypeIndex::Int + 1);
  return integer_up_to(operand, TypeIndex::Bool);
}

// The payload of a value whose type is Int, or one up to `last`.
llvm::Value* FunctionTranslator::integer_up_to(Arg operand, int32_t last) {
  const Kind kind = kind_of_operand(operand);
  if (kind == Kind::Int || kind == Kind::Bool) return payload(operand, kind);
  if (!operand.is_register() || kind != Kind::Any) {
    leave_always();
    return nullptr;
  }
  if (!writing()) return nullptr;
  const Words words = w_.load_words(b_, home(operand.index()));
  llvm::Value* type = b_.CreateTrunc(words.head, m_.i32);
  llvm::Value* from_int = b_.CreateSub(type, b_.getInt32(TypeIndex::Int));
  const auto most = static_cast<uint32_t>(last - TypeIndex::Int);
  leave_unless(b_.CreateICmpULE(from_int, b_.getInt32(most)));
  return words.payload;
}

llvm::Value* FunctionTranslator::floating(Arg operand, Kind as) {
  llvm::Value* bits = nullptr;
  const Kind kind = kind_of_operand(operand);
  if (is_float(kind)) {
    bits = payload(operand, as);
  } else if (operand.is_register() && kind == Kind::Any) {
    const uint32_t r = operand.index();
    if (writing()) {
      const Words words = w_.load_words(b_, home(r));
      leave_unless(w_.has_type(b_, words.head, TypeIndex::Float));
      bits = words.payload;
      b_.CreateStore(bits, local(r));
    }
    now_.kinds[r] = Kind::Float;
    now_.stale.add(r);
  } else {
    leave_always();
  }
  return writing() && bits ? b_.CreateBitCast(bits, b_.getDoubleTy()) : nullptr;
}

// Before the frame is left: releases what it holds.
void FunctionTranslator::clear_frame() {
  size_t values = 0;
  for (uint32_t r = 0; r < now_.kinds.size(); ++r) {
    values += now_.kinds[r] == Kind::Any && !borrowers_.has(r);
  }
  if (values > kClearedInCode) {
    if (writing()) {
      w_.call_runtime(b_, arguments(), &vm::CodeRuntime::clear, op(), b_.getInt64(0));
      reload_fuel();
    }
    std::fill(now_.kinds.begin(), now_.kinds.end(), Kind::None);
    now_.stale = RegisterSet(now_.kinds.size());
    return;
  }
  for (uint32_t r = 0; r < now_.kinds.size(); ++r) {
    drop_old(r);
    clear(r);
  }
}

}  // namespace tenon::codegen

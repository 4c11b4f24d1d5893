// The instructions that compiled code runs itself.
#include <algorithm>
#include <set>

#include "codegen/llvm/bytecode_function.h"
#include "llvm/IR/Intrinsics.h"
#include "object/type_index.h"
#include "vm/isa/operand_index.h"

// GCC mistakes LLVM's `new` with room for operands for an ordinary one.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace tenon::codegen {

using vm::Arg;
using vm::ArgKind;
using vm::CodeLayout;
using vm::Instruction;
using vm::OpClass;
using vm::Opcode;

namespace {

// The operands of binary operations and comparisons.
// Cells of more fields are left to the machine.
constexpr size_t kMostFields = 8;
constexpr uint32_t kDestination = vm::operand(Opcode::Add, "dst"),
                   kLeft = vm::operand(Opcode::Add, "a"), kRight = vm::operand(Opcode::Add, "b");

}  // namespace

void FunctionTranslator::instruction(const Instruction& in) {
  switch (in.info->op_class) {
    case OpClass::Return:
      return return_from(in);
    case OpClass::Goto:
      return go(flow_.block_at(in.arg(vm::operand(Opcode::Goto, "target"))), true);
    case OpClass::If:
      return if_true(in);
    case OpClass::IfEq:
      return if_equal(in);
    case OpClass::Switch:
      return switch_on(in);
    case OpClass::Move:
      return move(in);
    case OpClass::LoadInt:
      return define(in.arg(0), Kind::Int, b_.getInt64(static_cast<uint64_t>(in.arg(1).value())));
    case OpClass::Concurrent:
      return concurrent(in);
    case OpClass::Kill:
      for (const vm::Word word : in.list()) {
        drop_old(Arg(word).index());
        clear(Arg(word).index());
      }
      return;
    case OpClass::Binary:
    case OpClass::Comparison:
      if (!binary(in) && !ended_) run_in_machine(in);
      return;
    case OpClass::Call:
      if (in.opcode() == Opcode::Call) return call(in);
      if (in.opcode() == Opcode::TailCall) return tail_call(in);
      if (in.opcode() == Opcode::CallClosure) return call_closure(in);
      if (in.opcode() == Opcode::TailCallClosure) return tail_call_closure(in);
      return run_in_machine(in);
    case OpClass::Plain:
      if (!plain(in) && !ended_) run_in_machine(in);
      return;
    case OpClass::Unpack:
      if (in.opcode() != Opcode::TakeFields || !take_fields(in)) run_in_machine(in);
      return;
    default:
      return run_in_machine(in);
  }
}

void FunctionTranslator::move(const Instruction& in) {
  const Arg destination = in.arg(0), source = in.arg(1);
  const bool is_last = source.is(ArgKind::LastUse);
  const Kind kind = kind_of_operand(source);
  if (destination.is_none()) {
    if (!is_last) return;
    drop_old(source.index());
    return clear(source.index());
  }
  if (source.is_register() && source.index() == destination.index()) return;
  const Words words = take(source, is_last);
  if (is_number(kind)) return define(destination.index(), kind, words.payload);
  if (source.is_none() || kind == Kind::None) {
    drop_old(destination.index());
    return clear(destination.index());
  }
  define(destination.index(), words);
}

void FunctionTranslator::if_true(const Instruction& in) {
  const Arg condition = in.arg(vm::operand(Opcode::If, "cond"));
  const uint32_t otherwise = flow_.block_at(in.arg(vm::operand(Opcode::If, "otherwise")));
  if (!condition.is_register()) {
    if (condition.value() == 0) return go(otherwise, true);
    return go(flow_.block_beginning(at_ + 1), false);
  }
  llvm::Value* value = integer(condition, false);
  if (ended_) return;
  branch(writing() ? b_.CreateICmpNE(value, b_.getInt64(0)) : nullptr, otherwise);
}

void FunctionTranslator::if_equal(const Instruction& in) {
  const Arg a = in.arg(vm::operand(Opcode::IfEq, "a")), b = in.arg(vm::operand(Opcode::IfEq, "b"));
  const uint32_t otherwise = flow_.block_at(in.arg(vm::operand(Opcode::IfEq, "otherwise")));
  llvm::Value* left = integer(a, false);
  if (ended_) return;
  llvm::Value* right = integer(b, false);
  if (ended_) return;
  branch(writing() ? b_.CreateICmpEQ(left, right) : nullptr, otherwise);
}

void FunctionTranslator::switch_on(const Instruction& in) {
  llvm::Value* value = integer(in.arg(vm::operand(Opcode::Switch, "value")), false);
  if (ended_) return;
  const auto cases = in.list();
  llvm::BasicBlock* const otherwise =
      edge(flow_.block_at(in.arg(vm::operand(Opcode::Switch, "otherwise"))), true);
  llvm::SwitchInst* made = nullptr;
  if (writing()) {
    made = b_.CreateSwitch(value, otherwise, static_cast<unsigned>(cases.size() / 2));
  }
  std::set<int64_t> seen;
  for (size_t i = 0; i < cases.size(); i += 2) {
    const int64_t number = Arg(cases[i]).value();
    if (!seen.insert(number).second) continue;  // the first case counts
    llvm::BasicBlock* const to = edge(flow_.block_at(Arg(cases[i + 1])), true);
    if (made) made->addCase(b_.getInt64(static_cast<uint64_t>(number)), to);
  }
  ended_ = true;
}

// ---- numbers ----

bool FunctionTranslator::binary(const Instruction& in) {
  const Opcode opcode = in.opcode();
  switch (opcode) {
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
      return logic(in);
    case Opcode::FloorDiv:
    case Opcode::FloorMod:
    case Opcode::TruncDiv:
    case Opcode::TruncMod:
      return divide(in);
    case Opcode::Bcast:
      return false;
    case Opcode::FAdd:
    case Opcode::FSub:
    case Opcode::FMul:
    case Opcode::FDiv:
    case Opcode::FRem:
    case Opcode::FMin:
    case Opcode::FMax:
    case Opcode::FEq:
    case Opcode::FLt:
    case Opcode::FLe:
    case Opcode::FNeg:
    case Opcode::FAbs:
    case Opcode::FFloor:
    case Opcode::FCeil:
    case Opcode::FTrunc:
    case Opcode::FRound:
    case Opcode::FSqrt:
    case Opcode::FSign:
      return floats(in);
    default:
      break;
  }
  const Arg destination = in.arg(kDestination);
  // Booleans may be compared for equality.
  const bool exact = opcode != Opcode::Eq && opcode != Opcode::Ne;
  llvm::Value* a = integer(in.arg(kLeft), exact);
  if (ended_) return true;
  llvm::Value* b = integer(in.arg(kRight), exact);
  if (ended_) return true;
  Kind kind = Kind::Int;
  llvm::Value* result = nullptr;
  auto compare = [&](llvm::CmpInst::Predicate predicate) {
    kind = Kind::Bool;
    if (writing()) result = b_.CreateZExt(b_.CreateICmp(predicate, a, b), m_.i64);
  };
  auto checked = [&](llvm::Intrinsic::ID id) {
    if (!writing()) return;
    llvm::Value* both = b_.CreateBinaryIntrinsic(id, a, b);
    llvm::Value* overflows = b_.CreateExtractValue(both, 1);
    leave_unless(b_.CreateNot(overflows));
    result = b_.CreateExtractValue(both, 0);
  };
  // Zero unless the count is in 0..63.
  auto shifted = [&](auto shift) {
    if (!writing()) return;
    llvm::Value* fits = b_.CreateICmpULT(b, b_.getInt64(64));
    llvm::Value* by = b_.CreateSelect(fits, b, b_.getInt64(0));
    result = b_.CreateSelect(fits, shift(a, by), b_.getInt64(0));
  };
  switch (opcode) {
    case Opcode::Add:
      if (writing()) result = b_.CreateAdd(a, b);
      break;
    case Opcode::Sub:
      if (writing()) result = b_.CreateSub(a, b);
      break;
    case Opcode::Mul:
      if (writing()) result = b_.CreateMul(a, b);
      break;
    case Opcode::Min:
      if (writing()) result = b_.CreateSelect(b_.CreateICmpSLT(a, b), a, b);
      break;
    case Opcode::Max:
      if (writing()) result = b_.CreateSelect(b_.CreateICmpSGT(a, b), a, b);
      break;
    case Opcode::AddChecked:
      checked(llvm::Intrinsic::sadd_with_overflow);
      break;
    case Opcode::SubChecked:
      checked(llvm::Intrinsic::ssub_with_overflow);
      break;
    case Opcode::MulChecked:
      checked(llvm::Intrinsic::smul_with_overflow);
      break;
    case Opcode::Shl:
      shifted([this](llvm::Value* x, llvm::Value* by) { return b_.CreateShl(x, by); });
      break;
    case Opcode::Shr:
      shifted([this](llvm::Value* x, llvm::Value* by) { return b_.CreateLShr(x, by); });
      break;
    case Opcode::Ashr:
      shifted([this](llvm::Value* x, llvm::Value* by) { return b_.CreateAShr(x, by); });
      break;
    case Opcode::Eq:
      compare(llvm::CmpInst::ICMP_EQ);
      break;
    case Opcode::Ne:
      compare(llvm::CmpInst::ICMP_NE);
      break;
    case Opcode::Lt:
      compare(llvm::CmpInst::ICMP_SLT);
      break;
    case Opcode::Le:
      compare(llvm::CmpInst::ICMP_SLE);
      break;
    case Opcode::Gt:
      compare(llvm::CmpInst::ICMP_SGT);
      break;
    case Opcode::Ge:
      compare(llvm::CmpInst::ICMP_SGE);
      break;
    case Opcode::Ult:
      compare(llvm::CmpInst::ICMP_ULT);
      break;
    default:
      return false;
  }
  define(destination, kind, result);
  return true;
}

// A boolean if both operands are.
bool FunctionTranslator::logic(const Instruction& in) {
  const Arg left = in.arg(kLeft), right = in.arg(kRight);
  const Kind x = kind_of_operand(left), y = kind_of_operand(right);
  const bool is_known = (x == Kind::Int || x == Kind::Bool) && (y == Kind::Int || y == Kind::Bool);
  if (!is_known) return false;
  const Kind kind = x == Kind::Bool && y == Kind::Bool ? Kind::Bool : Kind::Int;
  llvm::Value* a = integer(left, false);
  llvm::Value* b = integer(right, false);
  llvm::Value* result = nullptr;
  if (writing()) {
    result = in.opcode() == Opcode::And  ? b_.CreateAnd(a, b)
             : in.opcode() == Opcode::Or ? b_.CreateOr(a, b)
                                         : b_.CreateXor(a, b);
  }
  define(in.arg(kDestination), kind, result);
  return true;
}

bool FunctionTranslator::divide(const Instruction& in) {
  llvm::Value* a = integer(in.arg(kLeft), true);
  if (ended_) return true;
  llvm::Value* b = integer(in.arg(kRight), true);
  if (ended_) return true;
  llvm::Value* result = nullptr;
  if (writing()) {
    const bool is_quotient = in.opcode() == Opcode::FloorDiv || in.opcode() == Opcode::TruncDiv;
    const bool floors = in.opcode() == Opcode::FloorDiv || in.opcode() == Opcode::FloorMod;
    llvm::Value* zero = b_.getInt64(0);
    leave_unless(b_.CreateICmpNE(b, zero));
    // Division by -1 could overflow: it is a negation.
    llvm::Value* negates = b_.CreateICmpEQ(b, b_.getInt64(~uint64_t{0}));
    llvm::Value* by = b_.CreateSelect(negates, b_.getInt64(1), b);
    llvm::Value* rest = b_.CreateSRem(a, by);  // 0 where it negates
    llvm::Value* rounds_down =
        b_.CreateAnd(b_.CreateICmpNE(rest, zero), b_.CreateICmpSLT(b_.CreateXor(rest, by), zero));
    if (is_quotient) {
      llvm::Value* quotient = b_.CreateSDiv(a, by);
      if (floors) quotient = b_.CreateSub(quotient, b_.CreateZExt(rounds_down, m_.i64));
      result = b_.CreateSelect(negates, b_.CreateSub(zero, a), quotient);
    } else {
      result = floors ? b_.CreateSelect(rounds_down, b_.CreateAdd(rest, by), rest) : rest;
    }
  }
  define(in.arg(kDestination), Kind::Int, result);
  return true;
}

bool FunctionTranslator::floats(const Instruction& in) {
  const Opcode opcode = in.opcode();
  const bool needs_rounding = opcode == Opcode::FFloor || opcode == Opcode::FCeil ||
                              opcode == Opcode::FTrunc || opcode == Opcode::FRound;
  if (opcode == Opcode::FRem || (needs_rounding && !m_.target.capabilities.rounding)) return false;
  const bool is_binary = in.operands.size() > kRight;
  llvm::Value* a = floating(in.arg(kLeft));
  if (ended_) return true;
  llvm::Value* b = is_binary ? floating(in.arg(kRight)) : a;
  if (ended_) return true;
  Kind kind = Kind::Float;
  if (opcode == Opcode::FEq || opcode == Opcode::FLt || opcode == Opcode::FLe) kind = Kind::Bool;
  llvm::Value* result = nullptr;
  if (writing()) {
    auto intrinsic = [&](llvm::Intrinsic::ID id) { return b_.CreateUnaryIntrinsic(id, a); };
    // b if it is beyond a or NaN; but a, if that is NaN.
    auto extreme = [&](llvm::CmpInst::Predicate beyond) {
      llvm::Value* is_beyond = b_.CreateFCmp(beyond, b, a);
      llvm::Value* takes_b = b_.CreateOr(is_beyond, b_.CreateFCmpUNO(b, b));
      return b_.CreateSelect(b_.CreateAnd(takes_b, b_.CreateFCmpORD(a, a)), b, a);
    };
    llvm::Value* zero = llvm::ConstantFP::get(b_.getDoubleTy(), 0.0);
    switch (opcode) {
      case Opcode::FAdd:
        result = b_.CreateFAdd(a, b);
        break;
      case Opcode::FSub:
        result = b_.CreateFSub(a, b);
        break;
      case Opcode::FMul:
        result = b_.CreateFMul(a, b);
        break;
      case Opcode::FDiv:
        result = b_.CreateFDiv(a, b);
        break;
      case Opcode::FMin:
        result = extreme(llvm::CmpInst::FCMP_OLT);
        break;
      case Opcode::FMax:
        result = extreme(llvm::CmpInst::FCMP_OGT);
        break;
      case Opcode::FEq:
        result = b_.CreateFCmpOEQ(a, b);
        break;
      case Opcode::FLt:
        result = b_.CreateFCmpOLT(a, b);
        break;
      case Opcode::FLe:
        result = b_.CreateFCmpOLE(a, b);
        break;
      case Opcode::FNeg:
        result = b_.CreateFNeg(a);
        break;
      case Opcode::FAbs:
        result = intrinsic(llvm::Intrinsic::fabs);
        break;
      case Opcode::FFloor:
        result = intrinsic(llvm::Intrinsic::floor);
        break;
      case Opcode::FCeil:
        result = intrinsic(llvm::Intrinsic::ceil);
        break;
      case Opcode::FTrunc:
        result = intrinsic(llvm::Intrinsic::trunc);
        break;
      case Opcode::FRound:
        result = intrinsic(llvm::Intrinsic::roundeven);
        break;
      case Opcode::FSqrt:
        result = intrinsic(llvm::Intrinsic::sqrt);
        break;
      default: {  // FSign
        llvm::Value* is_number = b_.CreateFCmpORD(a, a);
        llvm::Value* positive = b_.CreateUIToFP(b_.CreateFCmpOGT(a, zero), b_.getDoubleTy());
        llvm::Value* negative = b_.CreateUIToFP(b_.CreateFCmpOLT(a, zero), b_.getDoubleTy());
        result = b_.CreateSelect(is_number, b_.CreateFSub(positive, negative), a);
        break;
      }
    }
    result = kind == Kind::Bool ? b_.CreateZExt(result, m_.i64) : b_.CreateBitCast(result, m_.i64);
  }
  define(in.arg(kDestination), kind, result);
  return true;
}

// ---- other instructions ----

bool FunctionTranslator::plain(const Instruction& in) {
  const Opcode opcode = in.opcode();
  auto dtype = [&] {
    for (uint32_t i = 0; i < in.operands.size(); ++i) {
      if (in.arg(i).is(ArgKind::Dtype)) return in.arg(i).as_dtype();
    }
    return DataType();
  };
  switch (opcode) {
    case Opcode::GetField:
    case Opcode::BorrowField:
      return get_field(in);
    case Opcode::GetTag:
      return get_tag(in);
    case Opcode::ReuseAdt:
      return reuse_adt(in);
    case Opcode::Not: {
      const Kind kind = kind_of_operand(in.arg(1));
      if (kind != Kind::Int && kind != Kind::Bool) return false;
      llvm::Value* a = integer(in.arg(1), false);
      llvm::Value* flipped = b_.getInt64(kind == Kind::Bool ? 1 : ~uint64_t{0});
      define(in.arg(0), kind, writing() ? b_.CreateXor(a, flipped) : nullptr);
      return true;
    }
    case Opcode::Narrow: {
      const DataType to = dtype();
      if (!to.is_int() && !to.is_bool()) return false;
      llvm::Value* a = integer(in.arg(1), false);
      if (ended_) return true;
      llvm::Value* result = nullptr;
      if (writing() && to.is_bool()) {
        result = b_.CreateZExt(b_.CreateICmpNE(a, b_.getInt64(0)), m_.i64);
      } else if (writing()) {
        llvm::Value* low = b_.CreateTrunc(a, b_.getIntNTy(to.bits));
        result = to.is_signed_int() ? b_.CreateSExt(low, m_.i64) : b_.CreateZExt(low, m_.i64);
      }
      define(in.arg(0), to.is_bool() ? Kind::Bool : Kind::Int, result);
      return true;
    }
    case Opcode::RoundFloat: {
      const DataType to = dtype();
      if (to != f32 && to != f64) return false;
      llvm::Value* a = floating(in.arg(1));
      if (ended_) return true;
      if (writing()) {
        if (to == f32) a = b_.CreateFPExt(b_.CreateFPTrunc(a, b_.getFloatTy()), b_.getDoubleTy());
        a = b_.CreateBitCast(a, m_.i64);
      }
      define(in.arg(0), Kind::Float, a);
      return true;
    }
    case Opcode::ToFloat: {
      const DataType to = dtype();
      if (to != f32 && to != f64) return false;
      llvm::Value* a = integer(in.arg(1), false);
      if (ended_) return true;
      if (writing()) {
        a = to == f32 ? b_.CreateFPExt(b_.CreateSIToFP(a, b_.getFloatTy()), b_.getDoubleTy())
                      : b_.CreateSIToFP(a, b_.getDoubleTy());
        a = b_.CreateBitCast(a, m_.i64);
      }
      define(in.arg(0), Kind::Float, a);
      return true;
    }
    case Opcode::ToInteger: {
      const DataType to = dtype();
      if (to != i64 && !to.is_bool()) return false;
      llvm::Value* a = floating(in.arg(1));
      if (ended_) return true;
      llvm::Value* result = nullptr;
      if (writing() && to.is_bool()) {
        llvm::Value* zero = llvm::ConstantFP::get(b_.getDoubleTy(), 0.0);
        result = b_.CreateZExt(b_.CreateFCmpUNE(a, zero), m_.i64);
      } else if (writing()) {
        result = b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {m_.i64, b_.getDoubleTy()}, {a});
      }
      define(in.arg(0), to.is_bool() ? Kind::Bool : Kind::Int, result);
      return true;
    }
    case Opcode::Select: {
      const Arg condition = in.arg(1), a = in.arg(2), b = in.arg(3);
      const Kind kind = kind_of_operand(a);
      if (!is_number(kind) || kind != kind_of_operand(b)) return false;
      llvm::Value* holds = integer(condition, false);
      if (ended_) return true;
      const Words x = take(a, false), y = take(b, false);
      llvm::Value* result =
          writing() ? b_.CreateSelect(b_.CreateICmpNE(holds, b_.getInt64(0)), x.payload, y.payload)
                    : nullptr;
      for (const Arg operand : {a, b}) {
        if (operand.is(ArgKind::LastUse)) clear(operand.index());
      }
      define(in.arg(0), kind, result);
      return true;
    }
    default:
      return false;
  }
}

// Of a cell or an array, whose register may borrow it.
llvm::ConstantInt* FunctionTranslator::type_in(Arg object, int32_t type) {
  return b_.getInt32(static_cast<uint32_t>(object.is(ArgKind::Borrowed) ? -type : type));
}

// Also borrow_field, whose operands are the same. The machine takes a field that is a tensor, which
// may have to be made read-only.
bool FunctionTranslator::get_field(const Instruction& in) {
  const Arg destination = in.arg(0), object = in.arg(1), index = in.arg(2);
  if (!object.is_register() || kind_of_operand(object) != Kind::Any ||
      !index.is(ArgKind::Immediate) || index.value() < 0 || index.value() > 1 << 16 ||
      destination.is_none()) {
    return false;
  }
  const bool is_last = object.is(ArgKind::LastUse);
  const bool borrows = in.opcode() == Opcode::BorrowField;
  if (writing()) {
    const Words words = w_.load_words(b_, home(object.index()));
    llvm::BasicBlock *cell = new_block("cell"), *inside = new_block("inside"),
                     *field = new_block("field"), *other = new_block("other"),
                     *done = new_block("got");
    llvm::Value* type = b_.CreateTrunc(words.head, m_.i32);
    static_assert(CodeLayout::kArrayFields == CodeLayout::kCellFields);
    llvm::SwitchInst* kinds = b_.CreateSwitch(type, other, 2);
    kinds->addCase(type_in(object, TypeIndex::Cell), cell);
    llvm::BasicBlock* const array = new_block("array");
    kinds->addCase(type_in(object, TypeIndex::Array), array);
    llvm::Value* pointer = nullptr;
    b_.SetInsertPoint(array);
    llvm::Value* of_array = b_.CreateIntToPtr(words.payload, m_.pointer);
    llvm::Value* array_size = m_.field(b_, m_.i64, of_array, CodeLayout::kArraySize);
    b_.CreateBr(inside);
    b_.SetInsertPoint(cell);
    llvm::Value* of_cell = b_.CreateIntToPtr(words.payload, m_.pointer);
    llvm::Value* cell_size = m_.field(b_, m_.i64, of_cell, CodeLayout::kCellSize);
    b_.CreateBr(inside);
    b_.SetInsertPoint(inside);
    llvm::PHINode* size = b_.CreatePHI(m_.i64, 2);
    size->addIncoming(array_size, array);
    size->addIncoming(cell_size, cell);
    pointer = b_.CreateIntToPtr(words.payload, m_.pointer);
    llvm::Value* number = b_.getInt64(static_cast<uint64_t>(index.value()));
    b_.CreateCondBr(b_.CreateICmpULT(number, size), field, other);
    b_.SetInsertPoint(field);
    Words value = w_.load_words(
        b_, w_.address(b_, pointer,
                       CodeLayout::kCellFields + index.value() * CodeLayout::kRegisterBytes));
    if (borrows) {
      value.head = w_.borrowed(b_, value.head);
    } else {
      llvm::BasicBlock* const plain = new_block("plain");
      b_.CreateCondBr(
          b_.CreateICmpEQ(b_.CreateTrunc(value.head, m_.i32), b_.getInt32(TypeIndex::Tensor)),
          other, plain);
      b_.SetInsertPoint(plain);
      w_.retain(b_, value);
    }
    const State before = now_;
    if (is_last) {
      drop_old(object.index());
      clear(object.index());
    }
    define(destination.index(), value);
    b_.CreateBr(done);
    // A tensor, or an error.
    now_ = before;
    b_.SetInsertPoint(other);
    run_in_machine(in);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
  } else {
    run_in_machine(in);
  }
  return true;
}

bool FunctionTranslator::get_tag(const Instruction& in) {
  const Arg destination = in.arg(0), object = in.arg(1);
  if (!object.is_register() || kind_of_operand(object) != Kind::Any || destination.is_none()) {
    return false;
  }
  llvm::Value* tag = nullptr;
  if (writing()) {
    const Words words = w_.load_words(b_, home(object.index()));
    llvm::Value* type = b_.CreateTrunc(words.head, m_.i32);
    leave_unless(b_.CreateICmpEQ(type, type_in(object, TypeIndex::Cell)));
    llvm::Value* pointer = b_.CreateIntToPtr(words.payload, m_.pointer);
    tag = m_.field(b_, m_.i64, pointer, CodeLayout::kCellTag);
  }
  if (object.is(ArgKind::LastUse)) {
    drop_old(object.index());
    clear(object.index());
  }
  define(destination.index(), Kind::Int, tag);
  return true;
}

llvm::Value* FunctionTranslator::cell_of(Words words, size_t size, llvm::BasicBlock* otherwise) {
  llvm::BasicBlock *const cell = new_block("cell"), *const sized = new_block("sized");
  llvm::Value* type = b_.CreateTrunc(words.head, m_.i32);
  b_.CreateCondBr(b_.CreateICmpEQ(type, b_.getInt32(TypeIndex::Cell)), cell, otherwise);
  b_.SetInsertPoint(cell);
  llvm::Value* pointer = b_.CreateIntToPtr(words.payload, m_.pointer);
  llvm::Value* found = m_.field(b_, m_.i64, pointer, CodeLayout::kCellSize);
  b_.CreateCondBr(b_.CreateICmpEQ(found, b_.getInt64(size)), sized, otherwise);
  b_.SetInsertPoint(sized);
  return pointer;
}

llvm::Value* FunctionTranslator::field_place(llvm::Value* cell, size_t index) {
  return w_.address(
      b_, cell, CodeLayout::kCellFields + static_cast<int64_t>(index) * CodeLayout::kRegisterBytes);
}

llvm::Value* FunctionTranslator::is_sole(llvm::Value* object) {
  llvm::LoadInst* strong = b_.CreateLoad(m_.i32, object);
  strong->setAtomic(llvm::AtomicOrdering::Acquire);
  strong->setAlignment(llvm::Align(8));
  return b_.CreateICmpEQ(strong, b_.getInt32(1));
}

// The machine takes fields that are tensors, which may have to be made read-only.
bool FunctionTranslator::take_fields(const Instruction& in) {
  const Arg object = in.arg(0);
  const std::span<const vm::Word> list = in.list();
  if (!object.is_register() || kind_of_operand(object) != Kind::Any || list.size() > kMostFields) {
    return false;
  }
  if (!writing()) {
    run_in_machine(in);
    return true;
  }
  llvm::BasicBlock *const other = new_block("other"), *const plain = new_block("plain"),
                          *const moved = new_block("moved"), *const shared = new_block("shared"),
                          *const taken = new_block("taken"), *const done = new_block("done");
  llvm::Value* cell = cell_of(w_.load_words(b_, home(object.index())), list.size(), other);
  std::vector<Words> fields;
  std::vector<llvm::Value*> places;
  llvm::Value* has_tensor = b_.getFalse();
  for (size_t i = 0; i < list.size(); ++i) {
    places.push_back(field_place(cell, i));
    fields.push_back(w_.load_words(b_, places[i]));
    llvm::Value* is_tensor =
        b_.CreateICmpEQ(b_.CreateTrunc(fields[i].head, m_.i32), b_.getInt32(TypeIndex::Tensor));
    has_tensor = b_.CreateOr(has_tensor, is_tensor);
  }
  b_.CreateCondBr(has_tensor, other, plain);
  b_.SetInsertPoint(plain);
  b_.CreateCondBr(is_sole(cell), moved, shared);
  b_.SetInsertPoint(moved);
  for (size_t i = 0; i < list.size(); ++i) w_.store_words(b_, places[i], w_.none());
  for (size_t i = 0; i < list.size(); ++i) {
    if (Arg(list[i]).is_none()) release(fields[i]);
  }
  b_.CreateBr(taken);
  b_.SetInsertPoint(shared);
  for (size_t i = 0; i < list.size(); ++i) {
    if (!Arg(list[i]).is_none()) w_.retain(b_, fields[i]);
  }
  b_.CreateBr(taken);
  b_.SetInsertPoint(taken);
  const State before = now_;
  if (object.is(ArgKind::LastUse)) drop_old(object.index());
  for (size_t i = 0; i < list.size(); ++i) {
    if (!Arg(list[i]).is_none()) define(Arg(list[i]).index(), fields[i]);
  }
  b_.CreateBr(done);
  now_ = before;
  b_.SetInsertPoint(other);
  run_in_machine(in);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  return true;
}

bool FunctionTranslator::reuse_adt(const Instruction& in) {
  const Arg destination = in.arg(vm::operand(Opcode::ReuseAdt, "dst")),
            object = in.arg(vm::operand(Opcode::ReuseAdt, "object")),
            tag = in.arg(vm::operand(Opcode::ReuseAdt, "tag"));
  const std::span<const vm::Word> list = in.list();
  const auto is_object = [&](vm::Word word) {
    return Arg(word).is_register() && Arg(word).index() == object.index();
  };
  if (!object.is(ArgKind::LastUse) || kind_of_operand(object) != Kind::Any ||
      destination.is_none() || list.size() > kMostFields || std::ranges::any_of(list, is_object)) {
    return false;
  }
  if (!writing()) {
    run_in_machine(in);
    return true;
  }
  llvm::BasicBlock *const other = new_block("other"), *const empty = new_block("empty"),
                          *const done = new_block("done");
  const Words words = w_.load_words(b_, home(object.index()));
  llvm::Value* cell = cell_of(words, list.size(), other);
  std::vector<llvm::Value*> places;
  llvm::Value* heads = b_.getInt64(0);
  for (size_t i = 0; i < list.size(); ++i) {
    places.push_back(field_place(cell, i));
    heads = b_.CreateOr(heads, b_.CreateLoad(m_.i64, places[i]));
  }
  b_.CreateCondBr(b_.CreateAnd(is_sole(cell), b_.CreateICmpEQ(heads, b_.getInt64(0))), empty,
                  other);
  b_.SetInsertPoint(empty);
  const State before = now_;
  clear(object.index());
  const std::vector<Words> values = take_arguments(in);
  b_.CreateStore(b_.getInt64(static_cast<uint64_t>(tag.value())),
                 w_.address(b_, cell, CodeLayout::kCellTag));
  for (size_t i = 0; i < list.size(); ++i) w_.store_words(b_, places[i], values[i]);
  define(destination.index(), words);
  b_.CreateBr(done);
  now_ = before;
  b_.SetInsertPoint(other);
  run_in_machine(in);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  return true;
}

}  // namespace tenon::codegen

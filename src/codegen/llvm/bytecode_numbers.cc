// Numbers: arithmetic, comparisons and conversions, as compiled code runs them itself.

#include "codegen/llvm/bytecode_function.h"
#include "llvm/IR/Intrinsics.h"
#include "vm/isa/operand_index.h"

namespace tenon::codegen {

using vm::Arg;
using vm::ArgKind;
using vm::Instruction;
using vm::Opcode;

namespace {

// The operands of binary operations and comparisons.
constexpr uint32_t kDestination = vm::operand(Opcode::Add, "dst"),
                   kLeft = vm::operand(Opcode::Add, "a"), kRight = vm::operand(Opcode::Add, "b");

// The operand of conversions.
constexpr uint32_t kOperand = vm::operand(Opcode::ToFloat, "a");

// Of an operation on floats that is translated here. A float is raw where it makes NaNs.
std::optional<RegisterKind> kind_of_result(Opcode opcode) {
  switch (opcode) {
    case Opcode::FAdd:
    case Opcode::FSub:
    case Opcode::FMul:
    case Opcode::FDiv:
    case Opcode::FSqrt:
    case Opcode::FFloor:
    case Opcode::FCeil:
    case Opcode::FTrunc:
    case Opcode::FRound:
      return RegisterKind::RawFloat;
    case Opcode::FEq:
    case Opcode::FLt:
    case Opcode::FLe:
      return RegisterKind::Bool;
    case Opcode::FMin:
    case Opcode::FMax:
    case Opcode::FNeg:
    case Opcode::FAbs:
    case Opcode::FSign:
      return RegisterKind::Float;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool FunctionTranslator::binary(const Instruction& in) {
  const Opcode opcode = in.opcode();
  if (in.info->has_operand(vm::OperandKind::Float)) return floats(in);
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
    default:
      break;
  }
  const Arg destination = in.arg(kDestination);
  // Booleans may be compared for equality.
  const bool is_equality = opcode == Opcode::Eq || opcode == Opcode::Ne;
  const auto operand = [&](uint32_t word) {
    return is_equality ? integer_or_boolean(in.arg(word)) : integer(in.arg(word));
  };
  llvm::Value* a = operand(kLeft);
  if (ended_) return true;
  llvm::Value* b = operand(kRight);
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
      leave_always();
      return true;
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
  llvm::Value* a = integer_or_boolean(left);
  llvm::Value* b = integer_or_boolean(right);
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
  llvm::Value* a = integer(in.arg(kLeft));
  if (ended_) return true;
  llvm::Value* b = integer(in.arg(kRight));
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
  const std::optional<Kind> of_result = kind_of_result(opcode);
  if (!of_result) {
    leave_always();
    return true;
  }
  const Kind kind = *of_result;
  // Whether a NaN is the one doesn't matter to what makes NaNs, and to comparisons.
  const Kind operands = kind == Kind::Float ? Kind::Float : Kind::RawFloat;
  llvm::Value* a = floating(in.arg(kLeft), operands);
  if (ended_) return true;
  llvm::Value* b = is_binary ? floating(in.arg(kRight), operands) : a;
  if (ended_) return true;
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
      case Opcode::FSign: {
        llvm::Value* is_number = b_.CreateFCmpORD(a, a);
        llvm::Value* positive = b_.CreateUIToFP(b_.CreateFCmpOGT(a, zero), b_.getDoubleTy());
        llvm::Value* negative = b_.CreateUIToFP(b_.CreateFCmpOLT(a, zero), b_.getDoubleTy());
        result = b_.CreateSelect(is_number, b_.CreateFSub(positive, negative), a);
        break;
      }
      default:
        TENON_ASSERT(false, in.info->mnemonic, " has a kind of result, but no translation");
    }
    result = kind == Kind::Bool ? b_.CreateZExt(result, m_.i64) : b_.CreateBitCast(result, m_.i64);
  }
  define(in.arg(kDestination), kind, result);
  return true;
}

bool FunctionTranslator::select(const Instruction& in) {
  constexpr uint32_t kCondition = vm::operand(Opcode::Select, "cond"),
                     kThen = vm::operand(Opcode::Select, "a"),
                     kElse = vm::operand(Opcode::Select, "b");
  const Arg condition = in.arg(kCondition), a = in.arg(kThen), b = in.arg(kElse);
  Kind kind = kind_of_operand(a);
  const Kind other = kind_of_operand(b);
  if (kind != other) kind = is_float(kind) && is_float(other) ? Kind::Float : Kind::Any;
  if (!is_number(kind)) return false;
  llvm::Value* holds = integer_or_boolean(condition);
  if (ended_) return true;
  llvm::Value *x = payload(a, kind), *y = payload(b, kind), *result = nullptr;
  if (writing()) result = b_.CreateSelect(b_.CreateICmpNE(holds, b_.getInt64(0)), x, y);
  for (const Arg operand : {a, b}) {
    if (operand.is(ArgKind::LastUse)) clear(operand.index());
  }
  define(in.arg(kDestination), kind, result);
  return true;
}

bool FunctionTranslator::convert(const Instruction& in) {
  auto dtype = [&] {
    for (uint32_t i = 0; i < in.operands.size(); ++i) {
      if (in.arg(i).is(ArgKind::Dtype)) return in.arg(i).as_dtype();
    }
    return DataType();
  };
  switch (in.opcode()) {
    case Opcode::Not: {
      const Kind kind = kind_of_operand(in.arg(kOperand));
      if (kind != Kind::Int && kind != Kind::Bool) return false;
      llvm::Value* a = integer_or_boolean(in.arg(kOperand));
      llvm::Value* flipped = b_.getInt64(kind == Kind::Bool ? 1 : ~uint64_t{0});
      define(in.arg(kDestination), kind, writing() ? b_.CreateXor(a, flipped) : nullptr);
      return true;
    }
    case Opcode::Narrow: {
      const DataType to = dtype();
      if (!to.is_int() && !to.is_bool()) return false;
      llvm::Value* a = integer_or_boolean(in.arg(kOperand));
      if (ended_) return true;
      llvm::Value* result = nullptr;
      if (writing() && to.is_bool()) {
        result = b_.CreateZExt(b_.CreateICmpNE(a, b_.getInt64(0)), m_.i64);
      } else if (writing()) {
        llvm::Value* low = b_.CreateTrunc(a, b_.getIntNTy(to.bits));
        result = to.is_signed_int() ? b_.CreateSExt(low, m_.i64) : b_.CreateZExt(low, m_.i64);
      }
      define(in.arg(kDestination), to.is_bool() ? Kind::Bool : Kind::Int, result);
      return true;
    }
    case Opcode::RoundFloat: {
      const DataType to = dtype();
      if (to != f32 && to != f64) return false;
      llvm::Value* a = floating(in.arg(kOperand), Kind::RawFloat);
      if (ended_) return true;
      const Kind kind = kind_of_operand(in.arg(kOperand));  // rounding keeps what NaN it is
      if (writing()) {
        if (to == f32) a = b_.CreateFPExt(b_.CreateFPTrunc(a, b_.getFloatTy()), b_.getDoubleTy());
        a = b_.CreateBitCast(a, m_.i64);
      }
      define(in.arg(kDestination), kind, a);
      return true;
    }
    case Opcode::ToFloat: {
      const DataType to = dtype();
      if (to != f32 && to != f64) return false;
      llvm::Value* a = integer_or_boolean(in.arg(kOperand));
      if (ended_) return true;
      if (writing()) {
        a = to == f32 ? b_.CreateFPExt(b_.CreateSIToFP(a, b_.getFloatTy()), b_.getDoubleTy())
                      : b_.CreateSIToFP(a, b_.getDoubleTy());
        a = b_.CreateBitCast(a, m_.i64);
      }
      define(in.arg(kDestination), Kind::RawFloat, a);
      return true;
    }
    case Opcode::ToInteger: {
      const DataType to = dtype();
      if (to != i64 && !to.is_bool()) return false;
      llvm::Value* a = floating(in.arg(kOperand), Kind::RawFloat);
      if (ended_) return true;
      llvm::Value* result = nullptr;
      if (writing() && to.is_bool()) {
        llvm::Value* zero = llvm::ConstantFP::get(b_.getDoubleTy(), 0.0);
        result = b_.CreateZExt(b_.CreateFCmpUNE(a, zero), m_.i64);
      } else if (writing()) {
        result = b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {m_.i64, b_.getDoubleTy()}, {a});
      }
      define(in.arg(kDestination), to.is_bool() ? Kind::Bool : Kind::Int, result);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace tenon::codegen

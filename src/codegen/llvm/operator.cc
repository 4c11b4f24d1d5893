#include "codegen/llvm/operator.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "codegen/llvm/byte_dot.h"
#include "codegen/llvm/element.h"
#include "support/error.h"

namespace tenon::codegen {

using loop::BinaryOp;
using loop::UnaryOp;

namespace {

// The constant that `v` is, or that all its lanes are; null if there is none.
llvm::ConstantFP* splat_constant(llvm::Value* v) {
  auto* c = llvm::dyn_cast<llvm::Constant>(v);
  if (c != nullptr && c->getType()->isVectorTy()) c = c->getSplatValue();
  return llvm::dyn_cast_or_null<llvm::ConstantFP>(c);
}

// A product, perhaps negated, isn't contracted with an addition of it.
void forbid_contraction(llvm::Value* v) {
  while (auto* negation = llvm::dyn_cast<llvm::UnaryOperator>(v)) {
    negation->setHasAllowContract(false);
    v = negation->getOperand(0);
  }
  auto* product = llvm::dyn_cast<llvm::Instruction>(v);
  if (product && product->getOpcode() == llvm::Instruction::FMul) {
    product->setHasAllowContract(false);
  }
}

}  // namespace

llvm::Value* OperatorWriter::per_lane(
    llvm::ArrayRef<llvm::Value*> operands,
    const std::function<llvm::Value*(llvm::ArrayRef<llvm::Value*>)>& f) {
  if (!operands[0]->getType()->isVectorTy()) return f(operands);
  llvm::Value* result = nullptr;
  for (unsigned lane = 0; lane < f_.lanes.width; ++lane) {
    llvm::SmallVector<llvm::Value*, 4> scalars;
    for (llvm::Value* operand : operands) scalars.push_back(b_.CreateExtractElement(operand, lane));
    llvm::Value* element = f(scalars);
    if (result == nullptr)
      result =
          llvm::PoisonValue::get(llvm::FixedVectorType::get(element->getType(), f_.lanes.width));
    result = b_.CreateInsertElement(result, element, lane);
  }
  return result;
}

llvm::Value* OperatorWriter::rounded(llvm::Value* v, DataType t) {
  return codegen::rounded(f_.m, b_, v, t);
}

Value OperatorWriter::literal(const loop::Literal& e) {
  llvm::Type* type = register_type(f_.m, e.dtype);
  if (!e.dtype.is_float())
    return {llvm::ConstantInt::get(
        type, static_cast<uint64_t>(e.bits) & (e.dtype.is_bool() ? 1 : ~uint64_t{0}))};
  double v;
  std::memcpy(&v, &e.bits, sizeof v);
  return {llvm::ConstantFP::get(type, v)};
}

Value OperatorWriter::unary(const loop::Unary& e, Value a) {
  Num x = {&b_, a.v};
  const DataType t = e.a->dtype;
  auto done = [&](Num r) { return Value{r.v, a.lanes}; };
  if (e.op == UnaryOp::kNot || e.op == UnaryOp::kBitNot) return done(!x);
  if (!t.is_float()) {
    switch (e.op) {
      case UnaryOp::kNeg:
        return done(sub(x.i(0), x));
      case UnaryOp::kAbs:
        if (!t.is_signed_int()) return a;
        return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x.v, f_.b.getFalse()), a.lanes};
      case UnaryOp::kSign: {
        Num positive = {&b_, b_.CreateZExt(b_.CreateICmpNE(x.v, x.i(0).v), x.type())};
        if (!t.is_signed_int()) return done(positive);
        return done(pick({&b_, b_.CreateICmpSLT(x.v, x.i(0).v)}, x.i(~uint64_t{0}), positive));
      }
      case UnaryOp::kFloor:
      case UnaryOp::kCeil:
      case UnaryOp::kTrunc:
      case UnaryOp::kRoundEven:
      case UnaryOp::kRounded:
        return a;
      default:
        no_code("a function of real numbers", t);
    }
  }
  Num result = x;
  switch (e.op) {
    case UnaryOp::kNeg:
      return done(-x);
    case UnaryOp::kAbs:
      return done(absolute(x));
    case UnaryOp::kSign:
      return done(pick(x > 0.0, 1.0, pick(x < 0.0, -1.0, x + 0.0)));  // of -0, too, 0
    case UnaryOp::kIsNan:
      return done(is_nan(x));
    case UnaryOp::kIsInf:
      return done(absolute(x) == std::numeric_limits<double>::infinity());
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kTrunc:
    case UnaryOp::kRoundEven:
      result = f_.m.math.round(e.op, x);
      break;
    case UnaryOp::kSqrt:
      result = square_root(x);
      break;
    case UnaryOp::kRounded:
      forbid_contraction(a.v);
      return a;
    default:
      result = f_.m.math.unary(e.op, x);
  }
  return {rounded(result.v, t), a.lanes};
}

Value OperatorWriter::binary(const loop::Binary& e, Value a, Value b) {
  const bool lanes = a.lanes || b.lanes;
  llvm::Value* x = lanes ? f_.broadcast(a) : a.v;
  llvm::Value* y = lanes ? f_.broadcast(b) : b.v;
  if (e.a->dtype.is_float()) return {float_binary(e, x, y), lanes};
  return {integer_binary(e, x, y), lanes};
}

Value OperatorWriter::byte_dot_sum(Value sum, Value a, Value b) {
  const bool lanes = sum.lanes || a.lanes || b.lanes;
  auto operand = [&](Value v) { return lanes ? f_.broadcast(v) : v.v; };
  return {byte_dot(b_, f_.m.target, operand(sum), operand(a), operand(b)), lanes};
}

llvm::Value* OperatorWriter::float_binary(const loop::Binary& e, llvm::Value* a, llvm::Value* b) {
  const DataType t = e.a->dtype;
  Num x = {&b_, a}, y = {&b_, b};
  auto known_number = [](llvm::Value* v) {
    auto* number = splat_constant(v);
    return number != nullptr && !number->isNaN();
  };
  switch (e.op) {
    case BinaryOp::kEq:
      return b_.CreateFCmpOEQ(a, b);
    case BinaryOp::kNe:
      return b_.CreateFCmpUNE(a, b);
    case BinaryOp::kLt:
      return b_.CreateFCmpOLT(a, b);
    case BinaryOp::kLe:
      return b_.CreateFCmpOLE(a, b);
    case BinaryOp::kAdd:
      return rounded(b_.CreateFAdd(a, b), t);
    case BinaryOp::kSub:
      return rounded(b_.CreateFSub(a, b), t);
    case BinaryOp::kMul:
      return rounded(b_.CreateFMul(a, b), t);
    case BinaryOp::kDiv:
      return rounded(b_.CreateFDiv(a, b), t);
    case BinaryOp::kFloorDiv:
      return rounded(f_.m.math.round(UnaryOp::kFloor, x / y).v, t);
    // The hardware's minimum returns its second operand if one is NaN: replace NaN first.
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      auto better = [&](Num p, Num q) { return e.op == BinaryOp::kMin ? p < q : p > q; };
      if (known_number(b)) return pick(better(y, x), y, x).v;
      if (known_number(a)) return pick(better(x, y), x, y).v;
      return pick(is_nan(x), x, pick(better(x, y), x, y)).v;
    }
    case BinaryOp::kPow:
      if (auto* exponent = splat_constant(b)) {
        if (exponent->isExactlyValue(2.0)) return rounded((x * x).v, t);
        if (exponent->isExactlyValue(3.0)) return rounded((x * x * x).v, t);
        if (exponent->isExactlyValue(-1.0)) return rounded((1.0 / x).v, t);
        // A power of -0 is 0, and a power of -infinity is infinite, unlike roots.
        if (exponent->isExactlyValue(0.5)) {
          const double infinity = std::numeric_limits<double>::infinity();
          return rounded(pick(x == -infinity, infinity, square_root(x + 0.0)).v, t);
        }
      }
      [[fallthrough]];
    case BinaryOp::kAtan2:
      return rounded(f_.m.math.binary(e.op, x, y).v, t);
    case BinaryOp::kRem:
    case BinaryOp::kMod: {
      Num r = {&b_, per_lane({a, b}, [&](llvm::ArrayRef<llvm::Value*> p) {
                 return f_.m.math.binary(BinaryOp::kRem, {&b_, p[0]}, {&b_, p[1]}).v;
               })};
      if (e.op == BinaryOp::kRem) return r.v;  // exact in t
      Num wrong_side = ((r < 0.0) & (y > 0.0)) | ((r > 0.0) & (y < 0.0));
      return rounded(pick(wrong_side, r + y, r).v, t);
    }
    default:
      no_code(cat("operator ", e.op), t);
  }
}

llvm::Value* OperatorWriter::integer_binary(const loop::Binary& e, llvm::Value* a, llvm::Value* b) {
  const DataType t = e.a->dtype;
  const bool is_signed = t.is_signed_int();
  const bool index = t == i64 && facts_.nonnegative(e);  // far from overflow
  Num y = {&b_, b};
  switch (e.op) {
    case BinaryOp::kAdd:
      return b_.CreateAdd(a, b, "", false, index);
    case BinaryOp::kSub:
      return b_.CreateSub(a, b);
    case BinaryOp::kMul:
      return b_.CreateMul(a, b, "", false, index);
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
    case BinaryOp::kRem:
      return integer_division(e, a, b);
    case BinaryOp::kMin:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a,
                                      b);
    case BinaryOp::kMax:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a,
                                      b);
    case BinaryOp::kEq:
      return b_.CreateICmpEQ(a, b);
    case BinaryOp::kNe:
      return b_.CreateICmpNE(a, b);
    case BinaryOp::kLt:
      return is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case BinaryOp::kLe:
      return is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case BinaryOp::kAnd:
      return b_.CreateAnd(a, b);
    case BinaryOp::kOr:
      return b_.CreateOr(a, b);
    case BinaryOp::kXor:
      return b_.CreateXor(a, b);
    case BinaryOp::kShl:
    case BinaryOp::kShr: {
      Num inside = below(y, t.bits);
      Num amount = pick(inside, y, y.i(0));
      llvm::Value* shifted = e.op == BinaryOp::kShl ? b_.CreateShl(a, amount.v)
                             : is_signed            ? b_.CreateAShr(a, amount.v)
                                                    : b_.CreateLShr(a, amount.v);
      return pick(inside, y.with(shifted), y.i(0)).v;
    }
    case BinaryOp::kByteDot:
      return byte_dot(b_, f_.m.target, y.i(0).v, a, b);
    case BinaryOp::kPow:
      return per_lane({a, b}, [&](llvm::ArrayRef<llvm::Value*> p) {
        return f_.m.math.integer_power({&b_, p[0]}, {&b_, p[1]}, is_signed).v;
      });
    default:
      no_code(cat("operator ", e.op), t);
  }
}

llvm::Value* OperatorWriter::integer_division(const loop::Binary& e, llvm::Value* a,
                                              llvm::Value* b) {
  const DataType t = e.a->dtype;
  Num x = {&b_, a}, y = {&b_, b};
  const bool remainder = e.op == BinaryOp::kMod || e.op == BinaryOp::kRem;
  auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  if (constant != nullptr && constant->getType()->isVectorTy())
    constant = constant->getSplatValue();
  auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  if (known == nullptr || known->isZero()) {
    Num zero = same(y, 0);
    f_.stop_if(zero.v, vm::KernelError::DivisionByZero, nullptr, nullptr);
    if (f_.lanes.mask != nullptr) y = pick(zero, y.i(1), y);
  }
  const bool plain =
      t.is_unsigned_int() || t.is_bool() || (facts_.nonnegative(*e.a) && facts_.nonnegative(*e.b));
  if (plain) return remainder ? b_.CreateURem(x.v, y.v) : b_.CreateUDiv(x.v, y.v);

  const bool floors = e.op == BinaryOp::kFloorDiv || e.op == BinaryOp::kMod;
  if (floors && known != nullptr && known->getValue().isStrictlyPositive() &&
      known->getValue().isPowerOf2()) {
    if (remainder) return (x & (known->getZExtValue() - 1)).v;
    return ashr(x, known->getValue().logBase2()).v;
  }
  // The only quotient that overflows is by -1, which is a negation.
  Num minus_one = same(y, ~uint64_t{0});
  Num divisor = known != nullptr && !known->isMinusOne() ? y : pick(minus_one, y.i(1), y);
  Num quotient = {&b_, b_.CreateSDiv(x.v, divisor.v)};
  Num rest = sub(x, mul(quotient, divisor));
  quotient = pick(minus_one, sub(x.i(0), x), quotient);
  rest = pick(minus_one, x.i(0), rest);
  if (!floors) return remainder ? rest.v : quotient.v;
  Num wrong_side = (!same(rest, 0)) & Num{&b_, b_.CreateICmpSLT((rest ^ y).v, x.i(0).v)};
  return remainder ? pick(wrong_side, add(rest, y), rest).v
                   : pick(wrong_side, sub(quotient, 1), quotient).v;
}

// Clamped before it is converted: LLVM converts vectors to narrow integers lane by lane.
Num OperatorWriter::saturated(Num x, DataType to) {
  const bool is_signed = to.is_signed_int();
  const double least = is_signed ? -std::ldexp(1, to.bits - 1) : 0,
               greatest = std::ldexp(1, is_signed ? to.bits - 1 : to.bits) - 1;
  if (is_signed) x = pick(is_nan(x), 0.0, x);
  x = pick(x > least, x, x.f(least));  // NaN becomes 0 if that is the least
  x = pick(x < greatest, x, x.f(greatest));
  llvm::Value* whole = b_.CreateFPToSI(x.v, x.shape_of(b_.getInt32Ty()));
  return x.with(b_.CreateTrunc(whole, x.shape_of(register_type(f_.m, to))));
}

// Lanes of 32 or 64 bits. LLVM's saturating conversion converts them one by one.
Num OperatorWriter::saturated_lanes(Num x, DataType to) {
  const bool is_signed = to.is_signed_int();
  const double least = is_signed ? -std::ldexp(1, to.bits - 1) : 0,
               beyond = std::ldexp(1, is_signed ? to.bits - 1 : to.bits);
  const Num not_less = pick(x > least, x, x.f(least));  // NaN becomes the least
  const Num is_beyond = !(not_less < beyond);
  const Num inside = pick(is_beyond, x.f(0), not_less);
  llvm::Type* const type = x.shape_of(register_type(f_.m, to));
  const Num whole =
      x.with(is_signed ? b_.CreateFPToSI(inside.v, type) : b_.CreateFPToUI(inside.v, type));
  const llvm::APInt greatest =
      is_signed ? llvm::APInt::getSignedMaxValue(to.bits) : llvm::APInt::getMaxValue(to.bits);
  const Num found = pick(is_beyond, x.with(llvm::ConstantInt::get(type, greatest)), whole);
  return is_signed ? pick(is_nan(x), found.i(0), found) : found;
}

llvm::Value* OperatorWriter::convert(llvm::Value* v, DataType from, DataType to) {
  Num x = {&b_, v};
  llvm::Type* type = x.shape_of(register_type(f_.m, to));
  register_type(f_.m, from);
  if (from == to) return v;
  if (to.is_bool())
    return from.is_float() ? b_.CreateFCmpUNE(v, x.f(0).v) : b_.CreateICmpNE(v, x.i(0).v);
  const bool from_signed = from.is_signed_int();
  if (!from.is_float()) {
    if (to.is_float())
      return rounded(from_signed ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type), to);
    return b_.CreateIntCast(v, type, from_signed);
  }
  if (to.is_int() && (to.bits == 8 || to.bits == 16)) return saturated(x, to).v;
  if (to.is_int() && v->getType()->isVectorTy() && to.bits >= 32) return saturated_lanes(x, to).v;
  if (to.is_int())
    return b_.CreateIntrinsic(
        to.is_signed_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
        {type, v->getType()}, {v});
  if (to == f64) return b_.CreateFPExt(v, type);
  if (from == f64) return to == f32 ? x.to_f32().v : rounded(f_.m.math.round_to_odd(x).v, to);
  return rounded(v, to);
}

llvm::Value* OperatorWriter::reinterpret(llvm::Value* v, DataType from, DataType to) {
  const Num stored = {&b_, to_memory(f_.m, b_, v, from)};
  llvm::Type* type = stored.shape_of(memory_type(f_.m, to));
  return from_memory(f_.m, b_, b_.CreateBitCast(stored.v, type), to);
}

}  // namespace tenon::codegen

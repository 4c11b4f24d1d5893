// Powers and remainders: functions that need more than the working precision.
#include <limits>

#include "codegen/llvm/coefficients.h"
#include "codegen/llvm/math.h"
#include "llvm/IR/Module.h"

namespace tenon::codegen {
namespace c = coefficients;
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
}  // namespace

// Both are exact (Knuth's sum, Dekker's product) unless they overflow.
Math::Double2 Math::sum(Num a, Num b) {
  Num s = a + b;
  Num b_part = s - a;
  Num a_error = a - (s - b_part), b_error = b - b_part;
  return {s, a_error + b_error};
}

Math::Double2 Math::product(Num a, Num b) {
  Num p = a * b;
  if (has_fma_)
    return {p, a.with(a.b->CreateIntrinsic(llvm::Intrinsic::fma, {a.type()}, {a.v, b.v, (-p).v}))};
  auto split = [](Num v) {
    Num scaled = v * 0x1.0000002p27;  // 2^27 + 1
    Num high = scaled - (scaled - v);
    return Double2{high, v - high};
  };
  Double2 x = split(a), y = split(b);
  Num low = x.high * y.high - p;
  low = low + x.high * y.low;
  low = low + x.low * y.high;
  return {p, low + x.low * y.low};
}

// With s = f / (2+f): log(1+f) = 2s + (2/3) s^3 + s^5 T(s^2), the first two terms as sums of two
// doubles. Relative error about 2^-66.
Math::Double2 Math::precise_log(Num x) {
  Num tiny = x < 0x1p-1022;
  Num bits = pick(tiny, x * 0x1p52, x).int_bits();
  Num exponent = ashr(sub(bits, 0x3fe6a09e667f3bcd), 52);
  Num f = sub(bits, shl(exponent, 52)).float_bits() - 1.0;
  Num n = exponent.to_float(x.type()->getScalarType());
  n = pick(tiny, n - 52.0, n);

  Double2 denominator = sum(f.f(2), f);
  Num s = f / denominator.high;
  Double2 back = product(s, denominator.high);
  Num of_s = s * denominator.low;
  Num rest = ((f - back.high) - back.low) - of_s;
  Num s_low = rest / denominator.high;
  Double2 square = product(s, s);
  square.low = square.low + s * s_low * 2.0;
  Double2 cube = product(s, square.high);
  Num cross = s * square.low;
  cross = cross + s_low * square.high;
  cube.low = cube.low + cross;
  Double2 third = product(cube.high, cube.high.f(c::kTwoThirds[0]));
  third.low = third.low + cube.low * c::kTwoThirds[0];
  third.low = third.low + cube.high * c::kTwoThirds[1];
  Num z = square.high;
  Num fifth = cube.high * z;
  Num tail = fifth * polynomial(z, c::kLogTail);

  Num n_high = n * c::kLn2Parts64[0], n_low = n * c::kLn2Parts64[1];
  Double2 first = sum(n_high, s * 2.0);
  Double2 second = sum(first.high, third.high);
  Num low = first.low + second.low;
  low = low + (n_low + s_low * 2.0);
  low = low + (third.low + tail);
  return sum(second.high, low);
}

// x|^y = e^(y log |x|), then the sign and IEEE 754's special cases. If the result is rounded to f32
// afterwards, a plain f64 logarithm is precise enough.
Num Math::pow(Num x, Num y, bool precise) {
  Num a = absolute(x);
  Num value = a;
  if (precise) {
    Num above = a > 0.0, finite = a < kInfinity;
    Num positive = above & finite;
    Double2 log = precise_log(pick(positive, a, 1.0));
    log.high = pick(positive, log.high, log_f64(a));
    Double2 power = product(y, log.high);
    Num tame = absolute(power.high) < 800.0;
    Num low = pick(tame, power.low + y * log.low, 0.0);
    Num limited = pick(power.high < -800.0, -800.0, power.high);
    limited = pick(power.high > 800.0, 800.0, limited);
    Exponent e = split_exponent(limited);
    value = scaled(exp_minus_1(e.r + low) + 1.0, e);
  } else {
    value = exp(y * log_f64(a));
  }
  Num integral = round(loop::UnaryOp::kTrunc, y) == y;
  Num half = y * 0.5;
  Num exact = absolute(y) < 0x1p53;
  Num whole_half = round(loop::UnaryOp::kTrunc, half) == half;
  Num odd = (integral & exact) & !whole_half;
  Num bits = x.int_bits();
  Num negative = {x.b, x.b->CreateICmpSLT(bits.v, bits.i(0).v)};
  value = pick(a == 1.0, 1.0, value);  // also for an infinite exponent
  Num negated = -value;
  value = pick(negative & odd, negated, value);
  Num below = x < 0.0, finite = a < kInfinity;
  Num fraction = !integral;
  value = pick((below & finite) & fraction, kNotANumber, value);
  Num x_nan = is_nan(x), y_nan = is_nan(y);
  value = pick(x_nan | y_nan, kNotANumber, value);
  Num y_zero = y == 0.0, x_one = x == 1.0;
  return pick(y_zero | x_one, 1.0, value);
}

// Exact: long division on the mantissas, 11 bits of the quotient at a time.
Num Math::remainder(Num x, Num y) {
  Builder& b = *x.b;
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(b.getContext(), name, function);
  };
  Num ax = absolute(x), ay = absolute(y);
  Num x_finite = ax<kInfinity, y_positive = ay> 0.0, not_less = ax >= ay, y_finite = ay < kInfinity;
  Num ordinary = x_finite & y_positive & not_less & y_finite;
  // |x| < |y|: x itself. Infinite or NaN x, zero or NaN y: NaN.
  Num simple = pick((ax < ay), x, kNotANumber);
  llvm::BasicBlock* start = b.GetInsertBlock();
  llvm::BasicBlock *divide = block("divide"), *loop = block("loop"), *more = block("more"),
                   *end = block("end"), *done = block("done");
  b.CreateCondBr(ordinary.v, divide, done);

  b.SetInsertPoint(divide);
  auto unpack = [&](Num v) {
    Num bits = v.int_bits();
    Num field = lshr(bits, 52);
    Num fraction = bits & 0xfffffffffffff;
    Num denormal = same(field, 0);
    // mantissa 2^(exponent - 1075)
    return std::pair{pick(denormal, field.i(1), field),
                     pick(denormal, fraction, fraction | 0x10000000000000)};
  };
  auto [x_exponent, x_mantissa] = unpack(ax);
  auto [y_exponent, y_mantissa] = unpack(ay);
  Num first = {&b, b.CreateURem(x_mantissa.v, y_mantissa.v)};
  Num distance = sub(x_exponent, y_exponent);
  b.CreateBr(loop);

  b.SetInsertPoint(loop);
  llvm::PHINode* rest = b.CreatePHI(b.getInt64Ty(), 2);
  llvm::PHINode* left = b.CreatePHI(b.getInt64Ty(), 2);
  rest->addIncoming(first.v, divide);
  left->addIncoming(distance.v, divide);
  b.CreateCondBr(b.CreateICmpSGT(left, b.getInt64(0)), more, end);

  b.SetInsertPoint(more);
  llvm::Value* step = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, b.getInt64(11));
  rest->addIncoming(b.CreateURem(b.CreateShl(rest, step), y_mantissa.v), more);
  left->addIncoming(b.CreateSub(left, step), more);
  b.CreateBr(loop);

  // rest 2^(y_exponent - 1075), as two exact factors, since the result is representable.
  b.SetInsertPoint(end);
  Num magnitude = {&b, b.CreateUIToFP(rest, b.getDoubleTy())};
  Num up = {&b, b.CreateICmpSGT(y_exponent.v, b.getInt64(1075))};
  Num raise = shl(add(pick(up, sub(y_exponent, 1075), y_exponent.i(0)), 1023), 52).float_bits();
  Num lower_by = pick(up, y_exponent.i(0), sub(y_exponent.i(1075), y_exponent));
  Num lower_half = lshr(lower_by, 1);
  Num lower1 = shl(sub(lower_by.i(1023), lower_half), 52).float_bits();
  Num lower2 = shl(sub(lower_by.i(1023), sub(lower_by, lower_half)), 52).float_bits();
  Num value = copy_sign(magnitude * raise * lower1 * lower2, x);
  b.CreateBr(done);

  b.SetInsertPoint(done);
  llvm::PHINode* result = b.CreatePHI(b.getDoubleTy(), 2);
  result->addIncoming(simple.v, start);
  result->addIncoming(value.v, end);
  return {&b, result};
}

// By repeated squaring.
Num Math::integer_power(Num base, Num exponent, bool is_signed) {
  return call(is_signed ? "power.s" : "power.u", false, {base, exponent}, [&](auto& p) {
    Num x = p[0], n = p[1];
    Builder& b = *x.b;
    llvm::Function* function = b.GetInsertBlock()->getParent();
    auto block = [&](const char* name) {
      return llvm::BasicBlock::Create(b.getContext(), name, function);
    };
    llvm::BasicBlock* start = b.GetInsertBlock();
    llvm::BasicBlock *loop = block("loop"), *more = block("more"), *done = block("done"),
                     *end = block("end");
    Num minus_one = same(x, ~uint64_t{0});
    Num odd = same(n & 1, 1);
    // 1 / x, truncated.
    Num of_one = pick(same(x, 1), x.i(1), x.i(0));
    Num inverse = pick(minus_one, pick(odd, x, x.i(1)), of_one);
    llvm::Value* negative = is_signed ? b.CreateICmpSLT(n.v, n.i(0).v) : b.getFalse();
    b.CreateCondBr(negative, end, loop);
    b.SetInsertPoint(loop);
    llvm::PHINode* result = b.CreatePHI(x.type(), 2);
    llvm::PHINode* square = b.CreatePHI(x.type(), 2);
    llvm::PHINode* rest = b.CreatePHI(x.type(), 2);
    result->addIncoming(x.i(1).v, start);
    square->addIncoming(x.v, start);
    rest->addIncoming(n.v, start);
    b.CreateCondBr(b.CreateICmpEQ(rest, n.i(0).v), done, more);
    b.SetInsertPoint(more);
    Num r = {&b, result}, s = {&b, square}, k = {&b, rest};
    Num multiplied = mul(r, s);
    result->addIncoming(pick(same(k & 1, 1), multiplied, r).v, more);
    square->addIncoming(mul(s, s).v, more);
    rest->addIncoming(lshr(k, 1).v, more);
    b.CreateBr(loop);
    b.SetInsertPoint(done);
    b.CreateBr(end);
    b.SetInsertPoint(end);
    llvm::PHINode* value = b.CreatePHI(x.type(), 2);
    value->addIncoming(inverse.v, start);
    value->addIncoming(result, done);
    return Num{&b, value};
  });
}

}  // namespace tenon::codegen

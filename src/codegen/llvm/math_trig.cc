// Trigonometric and hyperbolic functions and their inverses, in f64.
#include <limits>

#include "codegen/llvm/coefficients.h"
#include "codegen/llvm/math.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"

namespace tenon::codegen {
namespace c = coefficients;
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kTwoOverPiNear = 0x1.45f306dc9c883p-1;
constexpr double kMagic = 0x1.8p52;  // adding it rounds to an integer
constexpr double kLargeArgument = 0x1p26;

Num finite_or_nan(Num x, Num result) {
  return pick(absolute(x) < kInfinity, result, kNotANumber);
}

}  // namespace

// x = quadrant * pi/2 + r. Below 2^26, subtracts the quadrant's multiples of the parts of pi/2,
// which are exact products (Cody and Waite); above that, uses Payne and Hanek's multiplication.
Math::Reduced Math::reduce(Num x) {
  Builder& b = *x.b;
  Num shifted = mad(x, kTwoOverPiNear, x.f(kMagic));
  Num n = shifted - kMagic;
  Num quadrant = sub(shifted.int_bits(), shifted.f(kMagic).int_bits());
  Num nearest = x - n * c::kHalfPiParts[0];
  Double2 first = sum(nearest, -(n * c::kHalfPiParts[1]));
  Double2 second = sum(first.high, -(n * c::kHalfPiParts[2]));
  Num low = first.low + second.low;
  low = low - n * c::kHalfPiParts[3];
  Double2 rest = sum(second.high, low);

  Num magnitude = absolute(x);
  Num beyond = magnitude >= kLargeArgument, finite = magnitude < kInfinity;
  Num large = beyond & finite;
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto* slow = llvm::BasicBlock::Create(b.getContext(), "large", function);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "reduced", function);
  llvm::BasicBlock* fast = b.GetInsertBlock();
  b.CreateCondBr(any(large).v, slow, done,
                 llvm::MDBuilder(b.getContext()).createBranchWeights(1, 1 << 10));
  b.SetInsertPoint(slow);
  Num argument = pick(large, x, x.f(kLargeArgument));
  Reduced far = {quadrant, rest.high, rest.low};
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x.type())) {
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
      Reduced one = reduce_large({&b, b.CreateExtractElement(argument.v, lane)});
      far.quadrant.v = b.CreateInsertElement(far.quadrant.v, one.quadrant.v, lane);
      far.r.v = b.CreateInsertElement(far.r.v, one.r.v, lane);
      far.r_low.v = b.CreateInsertElement(far.r_low.v, one.r_low.v, lane);
    }
  } else {
    far = reduce_large(argument);
  }
  far = {pick(large, far.quadrant, quadrant), pick(large, far.r, rest.high),
         pick(large, far.r_low, rest.low)};
  llvm::BasicBlock* slow_end = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  auto join = [&](Num near, Num distant) {
    llvm::PHINode* phi = b.CreatePHI(near.type(), 2);
    phi->addIncoming(near.v, fast);
    phi->addIncoming(distant.v, slow_end);
    return near.with(phi);
  };
  return {join(quadrant, far.quadrant), join(rest.high, far.r), join(rest.low, far.r_low)};
}

// x = M 2^e with an integer M of 53 bits. Of 2/pi = 0.b1 b2 b3 ..., the bits up to b(e-2) times x
// are multiples of 4 quadrants and are left out; the next 192 give
//   P = M * bits mod 2^192,   P / 2^190 = x * 2/pi mod 4,
// of which the first two bits are the quadrant. The rest has 190 bits, of which at most about 62
// are zeros or ones in front (the closest an f64 comes to a multiple of pi/2).
Math::Reduced Math::reduce_large(Num x) {
  Builder& b = *x.b;
  auto* result_type = llvm::StructType::get(b.getInt64Ty(), b.getDoubleTy(), b.getDoubleTy());
  llvm::Function* function = module_.getFunction("tenon.reduce_large");
  if (function == nullptr) {
    function =
        llvm::Function::Create(llvm::FunctionType::get(result_type, {b.getDoubleTy()}, false),
                               llvm::Function::InternalLinkage, "tenon.reduce_large", module_);
    prepare_(function);
    function->addFnAttr(llvm::Attribute::NoInline);
    function->addFnAttr(llvm::Attribute::Cold);
    Builder in(llvm::BasicBlock::Create(b.getContext(), "", function));
    Num value = {&in, function->getArg(0)};
    Num bits = absolute(value).int_bits();
    Num exponent = sub(lshr(bits, 52), 1075);  // e >= 26 - 52
    Num mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;

    // Bits of 2/pi from b(e-1) on: in the table, after its word of zeros, at 64 + e - 2.
    auto* table_type = llvm::ArrayType::get(in.getInt64Ty(), std::size(c::kTwoOverPi));
    auto* table = new llvm::GlobalVariable(
        module_, table_type, true, llvm::GlobalValue::PrivateLinkage,
        llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef<uint64_t>(c::kTwoOverPi)),
        "tenon.two_over_pi");
    Num position = add(exponent, 62);
    Num word = lshr(position, 6), shift = position & 63;
    Num loaded[4] = {bits, bits, bits, bits};
    for (unsigned k = 0; k < 4; ++k)
      loaded[k] = {&in, in.CreateLoad(in.getInt64Ty(),
                                      in.CreateGEP(in.getInt64Ty(), table, add(word, k).v))};
    Num window[3] = {bits, bits, bits};  // most significant first
    for (unsigned k = 0; k < 3; ++k)
      window[k] = {&in, in.CreateIntrinsic(llvm::Intrinsic::fshl, {in.getInt64Ty()},
                                           {loaded[k].v, loaded[k + 1].v, shift.v})};
    // P in three words, from the least significant.
    auto wide = [&](Num v) { return Num{&in, in.CreateZExt(v.v, in.getInt128Ty())}; };
    auto narrow = [&](Num v) { return Num{&in, in.CreateTrunc(v.v, in.getInt64Ty())}; };
    Num factor = wide(mantissa);
    Num low = mul(factor, wide(window[2]));
    Num middle = mul(factor, wide(window[1]));
    middle = add(middle, lshr(low, 64));
    Num top = mul(mantissa, window[0]);
    top = add(top, narrow(lshr(middle, 64)));
    Num p0 = narrow(low), p1 = narrow(middle), p2 = top;

    Num quadrant = lshr(p2, 62);
    // From half a quadrant on, the next quadrant is nearer: the rest is negative.
    Num up = {&in, in.CreateICmpNE((lshr(p2, 61) & 1).v, p2.i(0).v)};
    quadrant = pick(up, add(quadrant, 1), quadrant);
    auto fshl = [&](Num high, Num low_word, Num by) {
      return Num{&in, in.CreateIntrinsic(llvm::Intrinsic::fshl, {in.getInt64Ty()},
                                         {high.v, low_word.v, by.v})};
    };
    // The fraction in units of 2^-192 of a quadrant, its magnitude by complement.
    Num f2 = fshl(p2, p1, p2.i(2)), f1 = fshl(p1, p0, p2.i(2)), f0 = shl(p0, 2);
    f2 = pick(up, !f2, f2);
    f1 = pick(up, !f1, f1);
    f0 = pick(up, !f0, f0);
    Num skip_word = same(f2, 0);
    f2 = pick(skip_word, f1, f2);
    f1 = pick(skip_word, f0, f1);
    f0 = pick(skip_word, f0.i(0), f0);
    Num zeros = {&in, in.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, f2.v, in.getFalse())};
    zeros = pick(same(zeros, 64), zeros.i(63), zeros);
    Num first = fshl(f2, f1, zeros), second = fshl(f1, f0, zeros);
    // 53 bits and the 53 after them, both exact; their weights are 2^-53 and 2^-106, less `zeros`.
    Num high_int = lshr(first, 11);
    Num low_int = lshr(fshl(first, second, first.i(53)), 11);
    Num places = pick(skip_word, add(zeros, 64), zeros);
    Num scale = shl(sub(places.i(1023 - 53), places), 52).float_bits();
    auto to_double = [&](Num v) { return Num{&in, in.CreateUIToFP(v.v, in.getDoubleTy())}; };
    Num high = to_double(high_int) * scale;
    Num lower = to_double(low_int) * scale * 0x1p-53;
    // times pi/2
    Double2 scaled_high = product(high, high.f(c::kHalfPi[0]));
    Num scaled_low = scaled_high.low + high * c::kHalfPi[1];
    scaled_low = scaled_low + lower * c::kHalfPi[0];
    Double2 r = sum(scaled_high.high, scaled_low);
    Num negative = {&in, in.CreateICmpSLT(value.int_bits().v, bits.i(0).v)};
    Num flip = negative ^ up;
    llvm::Value* out = llvm::PoisonValue::get(result_type);
    out = in.CreateInsertValue(out, pick(negative, sub(quadrant.i(0), quadrant), quadrant).v, 0);
    out = in.CreateInsertValue(out, pick(flip, -r.high, r.high).v, 1);
    out = in.CreateInsertValue(out, pick(flip, -r.low, r.low).v, 2);
    in.CreateRet(out);
  }
  llvm::Value* all = b.CreateCall(function, {x.v});
  return {{&b, b.CreateExtractValue(all, 0)},
          {&b, b.CreateExtractValue(all, 1)},
          {&b, b.CreateExtractValue(all, 2)}};
}

Num Math::sine(const Reduced& a) {
  Num z = a.r * a.r;
  Num cube = a.r * z;
  Num series = polynomial(z, c::kSin);
  return a.r + mad(cube, series, a.r_low * mad(z, -0.5, z.f(1)));
}

// 1 - r^2/2 is rounded; the rounding error is added back.
Num Math::cosine(const Reduced& a) {
  Num z = a.r * a.r;
  Num half = z * 0.5;
  Num near = 1.0 - half;
  Num fourth = z * z;
  Num series = polynomial(z, c::kCos);
  Num tail = mad(fourth, series, -(a.r * a.r_low));
  return near + (((1.0 - near) - half) + tail);
}

Num Math::sin(Num x) {
  Reduced a = reduce(x);
  Num s = sine(a), k = cosine(a);
  Num value = pick(same(a.quadrant & 1, 0), s, k);
  Num negated = -value;
  value = pick(same(a.quadrant & 2, 0), value, negated);
  return finite_or_nan(x, pick(x == 0.0, x, value));
}

Num Math::cos(Num x) {
  Reduced a = reduce(x);
  Num s = sine(a), k = cosine(a);
  Num value = pick(same(a.quadrant & 1, 0), k, s);
  Num negated = -value;
  return finite_or_nan(x, pick(same(add(a.quadrant, 1) & 2, 0), value, negated));
}

Num Math::tan(Num x) {
  Reduced a = reduce(x);
  Num s = sine(a), k = cosine(a);
  Num even = same(a.quadrant & 1, 0);
  Num numerator = pick(even, s, -k);
  Num value = numerator / pick(even, k, s);
  return finite_or_nan(x, pick(x == 0.0, x, value));
}

// atan(y/x) for y >= 0, x > 0 from t = the tangent of an angle within pi/8 of 0, pi/4 or pi/2.
Num Math::atan(Num x) {
  return copy_sign(atan2(absolute(x), x.f(1)), x);
}

Num Math::atan2(Num y, Num x) {
  Num a = absolute(y), d = absolute(x);
  // Scales to avoid overflow and denormal quotients.
  Num larger = pick(a > d, a, d);
  Num scale = pick(larger < 0x1p-900, a.f(0x1p200), 1.0);
  scale = pick(larger > 0x1p900, 0x1p-200, scale);
  Num a_infinite = a == kInfinity, d_infinite = d == kInfinity;
  Num both_infinite = a_infinite & d_infinite;
  a = pick(both_infinite, 1.0, a * scale);
  d = pick(both_infinite, 1.0, d * scale);
  const double tan_pi_8 = 0x1.a827999fcef32p-2, tan_3pi_8 = 0x1.3504f333f9de6p+1;
  Num steep = a > d * tan_3pi_8;
  Num middle = !steep;
  middle = (a > d * tan_pi_8) & middle;
  Num up = pick(middle, a - d, a);
  up = pick(steep, -d, up);
  Num down = pick(steep, a, pick(middle, a + d, d));
  Num t = up / down;
  t = pick(down == 0.0, 0.0, t);
  Num z = t * t;
  Num cube = t * z;
  Num series = mad(cube, polynomial(z, c::kAtan), t);
  Num base = pick(steep, t.f(c::kHalfPi[0]), pick(middle, c::kHalfPi[0] / 2, t.f(0)));
  Num base_low = pick(steep, t.f(c::kHalfPi[1]), pick(middle, c::kHalfPi[1] / 2, t.f(0)));
  Num angle = base + (series + base_low);
  Num bits = x.int_bits();
  Num behind = {x.b, x.b->CreateICmpSLT(bits.v, bits.i(0).v)};  // -0 too
  angle = pick(behind, (angle.f(2 * c::kHalfPi[0]) - angle) + 2 * c::kHalfPi[1], angle);
  angle = copy_sign(angle, y);
  Num x_nan = is_nan(x), y_nan = is_nan(y);
  Num undefined = x_nan | y_nan;
  return pick(undefined, x + y, angle);
}

namespace {

// asin(s) = s + s^3 P(s^2) for |s| <= 1/2; beyond, from asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
struct ArcSine {
  Num magnitude, far;  // |x|, and whether it is beyond 1/2
  Num z;               // s^2

  Num value(Num s) const {
    Num cube = s * z;
    return mad(cube, polynomial(z, c::kAsin), s);
  }
};
ArcSine arc_sine(Num x) {
  Num a = absolute(x);
  Num far = a > 0.5;
  Num square = a * a;
  return {a, far, pick(far, (1.0 - a) * 0.5, square)};
}

}  // namespace

Num Math::asin(Num x) {
  ArcSine a = arc_sine(x);
  Num s = pick(a.far, square_root(a.z), a.magnitude);
  Num value = a.value(s);
  value = pick(a.far, c::kHalfPi[0] - (value * 2.0 - c::kHalfPi[1]), value);
  value = copy_sign(value, x);
  return pick(a.magnitude > 1.0, kNotANumber, value);
}

Num Math::acos(Num x) {
  ArcSine a = arc_sine(x);
  Num s = pick(a.far, square_root(a.z), x);
  Num value = a.value(s);
  Num near_value = c::kHalfPi[0] - (value - c::kHalfPi[1]);
  Num doubled = value * 2.0;
  Num far_value = 2 * c::kHalfPi[0] - (doubled - 2 * c::kHalfPi[1]);
  far_value = pick(x > 0.0, doubled, far_value);
  value = pick(a.far, far_value, near_value);
  return pick(a.magnitude > 1.0, kNotANumber, value);
}

Num Math::sinh(Num x) {
  Num a = absolute(x);
  Num e = expm1_nonnegative(a, 40);
  Num near = (e + e / (e + 1.0)) * 0.5;
  Num root = exp(a * 0.5);  // e^a may overflow where e^a / 2 doesn't
  Num large = root * 0.5 * root;
  return copy_sign(pick(a > 40.0, large, near), x);
}

Num Math::cosh(Num x) {
  Num a = absolute(x);
  Num root = exp(a * 0.5);
  Num e = exp(pick(a > 40.0, 40.0, a));
  Num near = e * 0.5;
  near = near + 0.5 / e;
  Num large = root * 0.5 * root;
  return pick(a > 40.0, large, near);
}

namespace {
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
}

Num Math::asinh(Num x) {
  Num a = absolute(x);
  Num square = a * a;
  Num near = log1p(a + square / (1.0 + square_root(square + 1.0)));
  Num large = log_f64(a) + kLn2;
  return copy_sign(pick(a > 0x1p28, large, near), x);
}

Num Math::acosh(Num x) {
  Num t = x - 1.0;
  Num square = t * t;
  Num near = log1p(t + square_root(t * 2.0 + square));
  Num large = log_f64(x) + kLn2;
  Num value = pick(x > 0x1p28, large, near);
  return pick(x < 1.0, kNotANumber, value);
}

Num Math::atanh(Num x) {
  Num a = absolute(x);
  Num doubled = a * 2.0;
  Num value = copy_sign(log1p(doubled / (1.0 - a)) * 0.5, x);
  return pick(a > 1.0, kNotANumber, value);
}

}  // namespace tenon::codegen

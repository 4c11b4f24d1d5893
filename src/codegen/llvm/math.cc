#include "codegen/llvm/math.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "codegen/llvm/coefficients.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "support/error.h"

namespace tenon::codegen {
namespace c = coefficients;
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kLog2E = 0x1.71547652b82fep+0;

// Adding and subtracting this rounds to an integer, which the sum's low bits then contain.
double rounding_magic(Num x) {
  return x.is_f32() ? 0x1.8p23 : 0x1.8p52;
}
unsigned fraction_bits(Num x) {
  return x.is_f32() ? 23 : 52;
}

// The smaller value; `x` if it is NaN.
Num limit_above(Num x, double limit) {
  return pick(x.f(limit) < x, limit, x);
}
Num limit_below(Num x, double limit) {
  return pick(x.f(limit) > x, limit, x);
}

std::string type_suffix(llvm::Type* type) {
  std::string name(1, type->getScalarType()->isIntegerTy() ? 'i' : 'f');
  name += std::to_string(type->getScalarSizeInBits());
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
    name += "x" + std::to_string(vector->getNumElements());
  return name;
}

// The vectors that an instruction of x86, which alone has `scaling`, multiplies by 2^n.
struct ScaledVector {
  unsigned bits, lanes;
  llvm::Intrinsic::ID scale;
};
constexpr ScaledVector kScaledVectors[] = {{32, 16, llvm::Intrinsic::x86_avx512_mask_scalef_ps_512},
                                           {32, 8, llvm::Intrinsic::x86_avx512_mask_scalef_ps_256},
                                           {32, 4, llvm::Intrinsic::x86_avx512_mask_scalef_ps_128},
                                           {64, 8, llvm::Intrinsic::x86_avx512_mask_scalef_pd_512},
                                           {64, 4, llvm::Intrinsic::x86_avx512_mask_scalef_pd_256},
                                           {64, 2, llvm::Intrinsic::x86_avx512_mask_scalef_pd_128}};

// x 2^n for an integral n of the same type; null for other types than those.
llvm::Value* scaled_vector(Builder& b, llvm::Value* x, llvm::Value* n) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (type == nullptr) return nullptr;
  for (const ScaledVector& v : kScaledVectors) {
    if (v.bits != type->getScalarSizeInBits() || v.lanes != type->getNumElements()) continue;
    llvm::Value* all = llvm::ConstantInt::getAllOnesValue(b.getIntNTy(std::max(v.lanes, 8u)));
    std::vector<llvm::Value*> arguments = {x, n, x, all};
    constexpr uint32_t kCurrentRounding = 4;
    if (v.bits * v.lanes == 512) arguments.push_back(b.getInt32(kCurrentRounding));
    return b.CreateIntrinsic(v.scale, {}, arguments);
  }
  return nullptr;
}

}  // namespace

Math::Math(llvm::Module& module, const Target& target, std::function<void(llvm::Function*)> prepare)
    : module_(module),
      has_fma_(target.capabilities.fma),
      has_rounding_(target.capabilities.rounding),
      has_half_conversion_(target.capabilities.half_conversion),
      has_scaling_(target.capabilities.scaling),
      prepare_(std::move(prepare)) {}

Num Math::call(const std::string& name, bool inlined, const std::vector<Num>& arguments,
               const Body& body) {
  Builder& b = *arguments[0].b;
  std::string full_name = "tenon." + name + "." + type_suffix(arguments[0].type());
  llvm::Function* function = module_.getFunction(full_name);
  if (function == nullptr) {
    std::vector<llvm::Type*> types;
    for (const Num& a : arguments) types.push_back(a.type());
    // The result type is known only once the body is written, so write it into a function that
    // returns the first argument's type, as all functions here do.
    function = llvm::Function::Create(llvm::FunctionType::get(types[0], types, false),
                                      llvm::Function::InternalLinkage, full_name, module_);
    prepare_(function);
    function->addFnAttr(inlined ? llvm::Attribute::AlwaysInline : llvm::Attribute::NoInline);
    function->setDoesNotAccessMemory();
    Builder inner(llvm::BasicBlock::Create(b.getContext(), "", function));
    std::vector<Num> parameters;
    for (llvm::Argument& p : function->args()) parameters.push_back({&inner, &p});
    inner.CreateRet(body(parameters).v);
  }
  std::vector<llvm::Value*> values;
  for (const Num& a : arguments) values.push_back(a.v);
  return {&b, b.CreateCall(function, values)};
}

Num Math::any(Num mask) {
  return mask.type()->isVectorTy() ? mask.with(mask.b->CreateOrReduce(mask.v)) : mask;
}

Num Math::table(const char* name, llvm::ArrayRef<double> values, Num index) {
  llvm::GlobalVariable* global = module_.getNamedGlobal(name);
  if (global == nullptr) {
    llvm::Constant* data = llvm::ConstantDataArray::get(module_.getContext(), values);
    global = new llvm::GlobalVariable(module_, data->getType(), true,
                                      llvm::GlobalValue::PrivateLinkage, data, name);
  }
  Builder& b = *index.b;
  llvm::Value* address = b.CreateGEP(b.getDoubleTy(), global, index.v);
  if (!index.type()->isVectorTy()) return {&b, b.CreateLoad(b.getDoubleTy(), address)};
  return {&b, b.CreateMaskedGather(index.shape_of(b.getDoubleTy()), address, llvm::Align(8))};
}

Num Math::unary(loop::UnaryOp op, Num x) {
  using Op = loop::UnaryOp;
  switch (op) {
    case Op::kExp:
      return call("exp", true, {x}, [this](auto& a) { return exp(a[0]); });
    case Op::kLog:
      return call("log", true, {x}, [this](auto& a) { return log(a[0]); });
    case Op::kTanh:
      return call("tanh", true, {x}, [this](auto& a) { return tanh(a[0]); });
    case Op::kErf:
      return call("erf", true, {x}, [this](auto& a) { return erf(a[0]); });
    case Op::kSigmoid:
      return call("sigmoid", true, {x}, [this](auto& a) { return sigmoid(a[0]); });
    default:
      break;
  }
  const std::string name = "function" + std::to_string(static_cast<int>(op));
  return call(name, false, {x}, [this, op](auto& a) {
    Num result = f64_function(op, a[0].to_f64());
    return a[0].is_f32() ? result.to_f32() : result;
  });
}

Num Math::f64_function(loop::UnaryOp op, Num x) {
  using Op = loop::UnaryOp;
  switch (op) {
    case Op::kSin:
      return sin(x);
    case Op::kCos:
      return cos(x);
    case Op::kTan:
      return tan(x);
    case Op::kAsin:
      return asin(x);
    case Op::kAcos:
      return acos(x);
    case Op::kAtan:
      return atan(x);
    case Op::kSinh:
      return sinh(x);
    case Op::kCosh:
      return cosh(x);
    case Op::kAsinh:
      return asinh(x);
    case Op::kAcosh:
      return acosh(x);
    case Op::kAtanh:
      return atanh(x);
    default:
      throw Error(ErrorKind::Internal, cat("no mathematical function for operator ", op));
  }
}

Num Math::binary(loop::BinaryOp op, Num a, Num b) {
  const bool narrow = a.is_f32();
  auto in_f64 = [&](const char* name, const Body& body) {
    return call(name, false, {a, b}, [&](const std::vector<Num>& p) {
      Num result = body({p[0].to_f64(), p[1].to_f64()});
      return narrow ? result.to_f32() : result;
    });
  };
  switch (op) {
    case loop::BinaryOp::kPow:
      return in_f64("pow", [&](const std::vector<Num>& p) { return pow(p[0], p[1], !narrow); });
    case loop::BinaryOp::kAtan2:
      return in_f64("atan2", [&](const std::vector<Num>& p) { return atan2(p[0], p[1]); });
    case loop::BinaryOp::kRem:
      return in_f64("rem", [&](const std::vector<Num>& p) { return remainder(p[0], p[1]); });
    default:
      throw Error(ErrorKind::Internal, cat("no mathematical function for operator ", op));
  }
}

Num Math::round(loop::UnaryOp how, Num x) {
  using Op = loop::UnaryOp;
  if (has_rounding_) {
    switch (how) {
      case Op::kFloor:
        return intrinsic(llvm::Intrinsic::floor, x);
      case Op::kCeil:
        return intrinsic(llvm::Intrinsic::ceil, x);
      case Op::kTrunc:
        return intrinsic(llvm::Intrinsic::trunc, x);
      default:
        return intrinsic(llvm::Intrinsic::roundeven, x);
    }
  }
  // Without the instruction: adding 2^23 or 2^52 removes the fraction; larger values have none.
  const double limit = x.is_f32() ? 0x1p23 : 0x1p52;
  Num a = absolute(x);
  Num even = copy_sign((a + limit) - limit, x);
  Num result = even;
  Num one = copy_sign(x.f(1), x);
  switch (how) {
    case Op::kFloor: {
      Num above = even > x;
      result = pick(above, even - 1.0, even);
      break;
    }
    case Op::kCeil: {
      Num below = even < x;
      result = pick(below, even + 1.0, even);
      break;
    }
    case Op::kTrunc: {
      Num away = absolute(even) > a;
      result = pick(away, even - one, even);
      break;
    }
    default:
      break;
  }
  Num small = a < limit;
  return pick(small, copy_sign(result, x), x);
}

// ---- the exponential family ----------------------------------------------------------------

Math::Exponent Math::split_exponent(Num x) {
  const double magic = rounding_magic(x);
  Num shifted = mad(x, kLog2E, x.f(magic));
  Num n = shifted - magic;
  const double* ln2 = x.is_f32() ? c::kLn2Parts32 : c::kLn2Parts64;
  Num r = mad(n, -ln2[1], mad(n, -ln2[0], x));
  Num bits = shifted.int_bits();
  Num magic_bits = shifted.f(magic).int_bits();
  return {r, n, sub(bits, magic_bits)};
}

Num Math::exp_minus_1(Num r) {
  Num tail = r.is_f32() ? polynomial(r, c::kExpF32) : polynomial(r, c::kExpF64);
  return mad(r * r, tail, r);
}

Num Math::power_of_two(Num n_bits) {
  const bool narrow = n_bits.bits() == 32;
  return shl(add(n_bits, narrow ? 127 : 1023), narrow ? 23 : 52).float_bits();
}

// Results below the normal range round only once and those above overflow: by one instruction, or
// in two steps.
Num Math::scaled(Num x, const Exponent& by) {
  if (has_scaling_) {
    if (llvm::Value* value = scaled_vector(*x.b, x.v, by.n.v)) return x.with(value);
  }
  Num half = ashr(by.n_bits, 1);
  Num once = x * power_of_two(half);
  return once * power_of_two(sub(by.n_bits, half));
}

Num Math::exp(Num x) {
  Num limited =
      x.is_f32() ? limit_below(limit_above(x, 89), -104.5) : limit_below(limit_above(x, 710), -746);
  Exponent e = split_exponent(limited);
  return scaled(exp_minus_1(e.r) + 1.0, e);
}

// e^x - 1 for x >= 0, with x clamped to `limit`.
Num Math::expm1_nonnegative(Num x, double limit) {
  Exponent e = split_exponent(limit_above(x, limit));
  Num scale = power_of_two(e.n_bits);
  Num rest = exp_minus_1(e.r);
  return mad(rest, scale, scale - 1.0);
}

// With E = e^(2|x|) - 1, tanh |x| = E / (E + 2), which is accurate near 0 too.
Num Math::tanh(Num x) {
  Num doubled = absolute(x) * 2.0;
  Num e = expm1_nonnegative(doubled, x.is_f32() ? 20 : 44);
  return copy_sign(e / (e + 2.0), x);
}

// e^-|x| can't overflow, and keeps the tail below 0 accurate.
Num Math::sigmoid(Num x) {
  Num t = exp(-absolute(x));
  Num numerator = pick(x < 0.0, t, x.f(1));
  return numerator / (1.0 + t);
}

Num Math::log(Num x) {
  return x.is_f32() ? log_f32(x) : log_f64(x);
}

namespace {

struct Mantissa {
  Num f;  // x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt(2))
  Num n;  // as a float
};
Mantissa split_mantissa(Num x) {
  const bool narrow = x.is_f32();
  Num tiny = x < (narrow ? 0x1p-126 : 0x1p-1022);
  Num normal = pick(tiny, x * (narrow ? 0x1p23 : 0x1p52), x);
  Num bits = normal.int_bits();
  Num n = ashr(sub(bits, narrow ? 0x3f3504f3 : 0x3fe6a09e667f3bcd), fraction_bits(x));
  Num m = sub(bits, shl(n, fraction_bits(x))).float_bits();
  Num n_float = n.to_float(x.type()->getScalarType());
  return {m - 1.0, pick(tiny, n_float - (narrow ? 23.0 : 52.0), n_float)};
}

Num log_special(Num x, Num result) {
  result = pick(x == kInfinity, x, result);
  result = pick(x == 0.0, -kInfinity, result);
  return pick(x >= 0.0, result, kNotANumber);
}

}  // namespace

Num Math::log_f32(Num x) {
  Mantissa m = split_mantissa(x);
  Num square = m.f * m.f;
  Num cube = m.f * square;
  Num tail = cube * polynomial(m.f, c::kLogF32);
  tail = mad(m.n, c::kLn2Parts32[1], tail);
  tail = mad(square, -0.5, tail);
  return log_special(x, mad(m.n, c::kLn2Parts32[0], m.f + tail));
}

// log(1+f) = f - (f^2/2 - s (f^2/2 + R)), s = f / (2+f), R the odd series of atanh beyond 2s.
Num Math::log_f64(Num x) {
  Mantissa m = split_mantissa(x);
  Num s = m.f / (m.f + 2.0);
  Num z = s * s;
  Num rest = z * polynomial(z, c::kLogF64);
  Num half_square = m.f * m.f * 0.5;
  Num series = half_square + rest;
  Num low = mad(s, series, m.n * c::kLn2Parts64[1]);
  return log_special(x, mad(m.n, c::kLn2Parts64[0], m.f - (half_square - low)));
}

// Corrects the rounding of 1 + x to first order.
Num Math::log1p(Num x) {
  Num u = 1.0 + x;
  Num correction = (x - (u - 1.0)) / u;
  Num result = log_f64(u) + correction;
  return pick(x < kInfinity, result, x);
}

Num Math::erf(Num x) {
  return x.is_f32() ? erf_f32(x) : erf_f64(x);
}

Num Math::erf_f32(Num x) {
  Num a = limit_above(absolute(x), 3.925);
  Num z = a * a;
  Num numerator = a * polynomial(z, c::kErfNumF32);
  Num value = numerator / polynomial(z, c::kErfDenF32);
  Num beyond = pick(is_nan(a), a, 1.0);
  value = limit_above(pick(a < 3.925, value, beyond), 1.0);
  return copy_sign(value, x);
}

// The Taylor series around the nearest multiple of 1/8, c, whose coefficients are Hermite
// polynomials in c: with g0 = 1, g1 = -2c, g(k+1) = -2 (c g(k) + g(k-1)) / (k+1),
//   erf(c + d) = erf(c) + erf'(c) sum g(k) d^(k+1) / (k+1).
Num Math::erf_f64(Num x) {
  Num a = limit_above(absolute(x), 6);
  Num shifted = mad(a, 8.0, a.f(0x1.8p52));
  Num eighths = shifted - 0x1.8p52;
  Num in_range = a >= 0.0;  // not NaN
  Num bits = shifted.int_bits();
  Num index = pick(in_range, sub(bits, shifted.f(0x1.8p52).int_bits()), bits.i(0));
  Num center = eighths * 0.125;
  Num d = a - center;
  constexpr int kTerms = 15;
  std::vector<Num> g = {a.f(1), center * -2.0};
  while (g.size() < kTerms) {
    const double k = static_cast<double>(g.size());
    g.push_back(mad(center, g[g.size() - 1], g[g.size() - 2]) * (-2.0 / k));
  }
  Num series = g[kTerms - 1] * (1.0 / kTerms);
  for (int k = kTerms - 1; k-- > 0;) series = mad(series, d, g[k] * (1.0 / (k + 1)));
  Num at = table("tenon.erf.at", c::kErfAt, index);
  Num slope = table("tenon.erf.slope", c::kErfSlope, index);
  Num value = slope * (d * series) + at;
  value = limit_above(value, 1.0);
  return copy_sign(pick(in_range, value, a), x);
}

// ---- 16-bit floats ---------------------------------------------------------------------------

Num Math::round_to_odd(Num x) {
  Num narrow = x.to_f32();
  Num back = narrow.to_f64();
  Num below_x = back<x, above_x = back> x;
  Num inexact = below_x | above_x;
  Num bits = narrow.int_bits();
  Num magnitude = absolute(x);
  Num away = absolute(back) > magnitude;
  Num towards_zero = pick(away, sub(bits, 1), bits);
  return pick(inexact, towards_zero | 1, bits).float_bits();
}

}  // namespace tenon::codegen

#include "loop/scalar.h"

#include <cmath>

#include "support/error.h"

namespace tenon::loop {
namespace {

double rounded(DataType t, double exact) {
  if (t.is_narrow_float()) return round_to(t, static_cast<float>(exact));
  return round_to(t, exact);
}

int64_t byte_dot(DataType t, int64_t a, int64_t b) {
  int64_t sum = 0;
  for (int shift = 0; shift < t.bits; shift += 8) {
    sum += static_cast<uint8_t>(a >> shift) * static_cast<int8_t>(b >> shift);
  }
  return wrap_to(t, sum);
}

double float_unary(UnaryOp op, DataType t, double x) {
  switch (op) {
    case UnaryOp::kNeg:
      return -x;
    case UnaryOp::kAbs:
      return std::fabs(x);
    case UnaryOp::kSign:
      return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0));
    case UnaryOp::kFloor:
      return std::floor(x);
    case UnaryOp::kCeil:
      return std::ceil(x);
    case UnaryOp::kTrunc:
      return std::trunc(x);
    case UnaryOp::kRoundEven:
      return std::nearbyint(x);
    case UnaryOp::kRounded:
      return x;
    case UnaryOp::kSqrt:
      return rounded(t, std::sqrt(x));
    case UnaryOp::kExp:
      return rounded(t, std::exp(x));
    case UnaryOp::kLog:
      return rounded(t, std::log(x));
    case UnaryOp::kTanh:
      return rounded(t, std::tanh(x));
    case UnaryOp::kErf:
      return rounded(t, std::erf(x));
    case UnaryOp::kSigmoid: {
      double e = std::exp(-std::fabs(x));
      return rounded(t, x >= 0 ? 1 / (1 + e) : e / (1 + e));
    }
    case UnaryOp::kSin:
      return rounded(t, std::sin(x));
    case UnaryOp::kCos:
      return rounded(t, std::cos(x));
    case UnaryOp::kTan:
      return rounded(t, std::tan(x));
    case UnaryOp::kAsin:
      return rounded(t, std::asin(x));
    case UnaryOp::kAcos:
      return rounded(t, std::acos(x));
    case UnaryOp::kAtan:
      return rounded(t, std::atan(x));
    case UnaryOp::kSinh:
      return rounded(t, std::sinh(x));
    case UnaryOp::kCosh:
      return rounded(t, std::cosh(x));
    case UnaryOp::kAsinh:
      return rounded(t, std::asinh(x));
    case UnaryOp::kAcosh:
      return rounded(t, std::acosh(x));
    case UnaryOp::kAtanh:
      return rounded(t, std::atanh(x));
    default:
      break;
  }
  TENON_ASSERT(false, "no float operation ", op);
  return 0;
}

int64_t int_unary(UnaryOp op, DataType t, int64_t x) {
  auto u = static_cast<uint64_t>(x);
  switch (op) {
    case UnaryOp::kNeg:
      return wrap_to(t, static_cast<int64_t>(-u));
    case UnaryOp::kAbs:
      return t.is_signed_int() && x < 0 ? wrap_to(t, static_cast<int64_t>(-u)) : x;
    case UnaryOp::kSign:
      return t.is_signed_int() ? (x > 0) - (x < 0) : x != 0;
    case UnaryOp::kNot:
      return x == 0;
    case UnaryOp::kBitNot:
      return t.is_bool() ? x == 0 : wrap_to(t, static_cast<int64_t>(~u));
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kTrunc:
    case UnaryOp::kRoundEven:
    case UnaryOp::kRounded:
      return x;
    default:
      break;
  }
  TENON_ASSERT(false, "no integer operation ", op);
  return 0;
}

std::optional<int64_t> float_binary(BinaryOp op, DataType t, double x, double y) {
  auto value = [&](double v) { return float_bits(rounded(t, v)); };
  switch (op) {
    case BinaryOp::kAdd:
      return value(x + y);
    case BinaryOp::kSub:
      return value(x - y);
    case BinaryOp::kMul:
      return value(x * y);
    case BinaryOp::kDiv:
      return value(x / y);
    case BinaryOp::kFloorDiv:
      return value(std::floor(x / y));
    case BinaryOp::kRem:
      return value(std::fmod(x, y));
    case BinaryOp::kMod: {
      double r = std::fmod(x, y);
      if (r != 0 && (r < 0) != (y < 0)) r += y;
      return value(r);
    }
    case BinaryOp::kPow:
      return value(std::pow(x, y));
    case BinaryOp::kAtan2:
      return value(std::atan2(x, y));
    case BinaryOp::kMin:
      return float_bits(std::isnan(x) ? x : std::isnan(y) ? y : y < x ? y : x);
    case BinaryOp::kMax:
      return float_bits(std::isnan(x) ? x : std::isnan(y) ? y : x < y ? y : x);
    case BinaryOp::kEq:
      return x == y;
    case BinaryOp::kNe:
      return x != y;
    case BinaryOp::kLt:
      return x < y;
    case BinaryOp::kLe:
      return x <= y;
    default:
      break;
  }
  TENON_ASSERT(false, "no float operation ", op);
  return 0;
}

int64_t int_power(DataType t, int64_t base, int64_t exponent) {
  if (t.is_signed_int() && exponent < 0) {  // 1 / base^n, truncated
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 ? -1 : 1;
    return 0;  // also for 0, since no integer is infinite
  }
  uint64_t r = 1, b = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e; e >>= 1, b *= b) {
    if (e & 1) r *= b;
  }
  return static_cast<int64_t>(r);
}

std::optional<int64_t> int_binary(BinaryOp op, DataType t, int64_t x, int64_t y) {
  bool is_signed = t.is_signed_int();
  auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  bool less = is_signed ? x < y : ux < uy, greater = is_signed ? x > y : ux > uy;
  auto value = [&](uint64_t v) { return wrap_to(t, static_cast<int64_t>(v)); };
  switch (op) {
    case BinaryOp::kAdd:
      return value(ux + uy);
    case BinaryOp::kSub:
      return value(ux - uy);
    case BinaryOp::kMul:
      return value(ux * uy);
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
    case BinaryOp::kRem: {
      if (y == 0) return std::nullopt;
      bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
      if (!is_signed) return value(quotient ? ux / uy : ux % uy);
      if (y == -1) return quotient ? value(-ux) : 0;  // the only quotient that overflows wraps
      int64_t q = x / y, r = x % y;
      bool adjust = r != 0 && (r < 0) != (y < 0);
      if (op == BinaryOp::kFloorDiv && adjust) --q;
      if (op == BinaryOp::kMod && adjust) r += y;
      return quotient ? q : r;
    }
    case BinaryOp::kPow:
      return value(static_cast<uint64_t>(int_power(t, x, y)));
    case BinaryOp::kMin:
      return less ? x : y;
    case BinaryOp::kMax:
      return greater ? x : y;
    case BinaryOp::kEq:
      return x == y;
    case BinaryOp::kNe:
      return x != y;
    case BinaryOp::kLt:
      return less;
    case BinaryOp::kLe:
      return !greater;
    case BinaryOp::kAnd:
      return x & y;
    case BinaryOp::kOr:
      return x | y;
    case BinaryOp::kXor:
      return x ^ y;
    case BinaryOp::kShl:
      return uy >= t.bits ? 0 : value(ux << uy);
    case BinaryOp::kShr:
      if (uy >= t.bits) return 0;
      return is_signed ? x >> y : static_cast<int64_t>(ux >> uy);
    case BinaryOp::kByteDot:
      return byte_dot(t, x, y);
    default:
      break;
  }
  TENON_ASSERT(false, "no integer operation ", op);
  return 0;
}

int64_t float_to_int(DataType to, double x) {
  if (to.is_bool()) return x != 0;
  if (std::isnan(x)) return 0;
  double t = std::trunc(x);
  if (to.is_unsigned_int()) {
    if (t <= 0) return 0;
    double limit = std::ldexp(1.0, to.bits);
    return t >= limit ? wrap_to(to, -1) : static_cast<int64_t>(static_cast<uint64_t>(t));
  }
  double limit = std::ldexp(1.0, to.bits - 1);
  int64_t greatest = static_cast<int64_t>((uint64_t{1} << (to.bits - 1)) - 1);
  if (t >= limit) return greatest;
  if (t < -limit) return -greatest - 1;
  return static_cast<int64_t>(t);
}

}  // namespace

int64_t scalar_unary(UnaryOp op, DataType dtype, int64_t a) {
  if (!dtype.is_float()) return int_unary(op, dtype, a);
  double x = as_float(a);
  if (op == UnaryOp::kIsNan) return std::isnan(x);
  if (op == UnaryOp::kIsInf) return std::isinf(x);
  return float_bits(float_unary(op, dtype, x));
}

std::optional<int64_t> scalar_binary(BinaryOp op, DataType dtype, int64_t a, int64_t b) {
  if (dtype.is_float()) return float_binary(op, dtype, as_float(a), as_float(b));
  return int_binary(op, dtype, a, b);
}

int64_t scalar_cast(DataType to, DataType from, int64_t a) {
  if (from.is_float()) {
    double x = as_float(a);
    return to.is_float() ? float_bits(round_to(to, x)) : float_to_int(to, x);
  }
  if (!to.is_float()) return wrap_to(to, a);
  bool whole = from.is_unsigned_int() && a < 0;
  // To f32 in one rounding; the narrow types are rounded from f32.
  auto to_double = [&] {
    return whole ? static_cast<double>(static_cast<uint64_t>(a)) : static_cast<double>(a);
  };
  auto to_single = [&] {
    return whole ? static_cast<float>(static_cast<uint64_t>(a)) : static_cast<float>(a);
  };
  return float_bits(to == f64 ? to_double() : round_to(to, to_single()));
}

int64_t scalar_bit_cast(DataType to, DataType from, int64_t a) {
  int64_t element = 0;
  scalar_store(from, &element, a);
  return scalar_load(to, &element);
}

int64_t scalar_load(DataType t, const void* p) {
  TENON_ASSERT(t.bits <= 64, "an element of ", t, " as 64 bits");
  auto get = [&]<class T>(T v) {
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  if (t.is_float()) {
    if (t == f32) return float_bits(get(float{}));
    if (t == f64) return float_bits(get(double{}));
    return float_bits(narrow_value(t, t.bytes() == 1 ? get(uint8_t{}) : get(uint16_t{})));
  }
  int64_t v = 0;
  switch (t.bytes()) {
    case 1:
      v = get(uint8_t{});
      break;
    case 2:
      v = get(uint16_t{});
      break;
    case 4:
      v = get(uint32_t{});
      break;
    default:
      v = get(int64_t{});
      break;
  }
  return wrap_to(t, v);
}

void scalar_store(DataType t, void* p, int64_t value) {
  TENON_ASSERT(t.bits <= 64, "an element of ", t, " from 64 bits");
  auto put = [&](auto v) { std::memcpy(p, &v, sizeof v); };
  if (t.is_float()) {
    double d = as_float(value);
    if (t == f32) return put(static_cast<float>(d));
    if (t == f64) return put(d);
    value = narrow_bits(t, d);
  }
  switch (t.bytes()) {
    case 1:
      return put(static_cast<uint8_t>(value));
    case 2:
      return put(static_cast<uint16_t>(value));
    case 4:
      return put(static_cast<uint32_t>(value));
    default:
      return put(value);
  }
}

}  // namespace tenon::loop

// The mathematical functions of kernels as LLVM IR: no call leaves the kernel object.
//
// Each function exists once per module, element type and number of lanes, and is generated on first
// use. exp, log, tanh, erf and sigmoid have their own f32 forms and are inlined into vector loops;
// the rest of f32 is computed in f64 and rounded. docs/semantics.md lists the error bounds,
// which math_test.cc asserts. Sources: Cody and Waite's and Payne and Hanek's argument reductions,
// Dekker's products, our own polynomials (minimax.py). Private to this folder: it exposes LLVM
// types.
//
// C++ leaves the order in which arguments and operands are evaluated to its compiler. So that every
// build of Tenon emits the same code, at most one argument of a call here emits code; others are
// named before it.
#pragma once

#include <functional>
#include <string>

#include "codegen/llvm/numeric.h"
#include "codegen/llvm/target.h"
#include "loop/expr.h"

namespace tenon::codegen {

class Math {
 public:
  // `prepare` sets the attributes of every function of the module.
  Math(llvm::Module& module, const Target& target, std::function<void(llvm::Function*)> prepare);

  // kExp ... kAtanh on f32 or f64, scalar or vector.
  Num unary(loop::UnaryOp op, Num x);
  // kPow, kAtan2 on f32 or f64, scalar or vector; kRem (C's fmod, exact) on scalars.
  Num binary(loop::BinaryOp op, Num a, Num b);
  // a to the power b, scalar integers: wraps; a negative exponent gives 0 except for bases 1 and
  // -1.
  Num integer_power(Num a, Num b, bool is_signed);

  // Rounding to an integral float: kFloor, kCeil, kTrunc, kRoundEven.
  Num round(loop::UnaryOp how, Num x);

  // Floats narrower than f32 are stored as their bits and computed in f32; `to_narrow` rounds as
  // round_to does (object/narrow_float.h).
  Num from_narrow(Num bits, DataType dtype);
  Num to_narrow(Num x, DataType dtype);
  // f64 to f32, with the last bit set if inexact: rounding that to a narrower type then rounds only
  // once.
  Num round_to_odd(Num x);

 private:
  using Body = std::function<Num(const std::vector<Num>&)>;
  // Calls the module's function of that name for these argument types; `body` writes it if it is
  // new.
  Num call(const std::string& name, bool inlined, const std::vector<Num>& arguments,
           const Body& body);

  // math.cc: the exponential family, in the argument's precision.
  struct Exponent {
    Num r;       // |r| <= ln2/2
    Num n;       // x = n ln2 + r, an integer
    Num n_bits;  // n in an integer type
  };
  Exponent split_exponent(Num x);
  Num exp_minus_1(Num r);                 // e^r - 1 for |r| <= ln2/2
  Num power_of_two(Num n_bits);           // in the normal range
  Num scaled(Num x, const Exponent& by);  // x 2^n, for any n that the result's range allows
  Num exp(Num x);
  Num expm1_nonnegative(Num x, double limit);
  Num log(Num x);
  Num log_f32(Num x);
  Num log_f64(Num x);
  Num log1p(Num x);
  Num tanh(Num x);
  Num sigmoid(Num x);
  Num erf(Num x);
  Num erf_f32(Num x);
  Num erf_f64(Num x);

  // math_trig.cc, in f64.
  struct Reduced {
    Num quadrant;  // an integer, of which the last two bits matter
    Num r, r_low;  // the rest, |r| <= pi/4
  };
  Reduced reduce(Num x);
  Reduced reduce_large(Num x);  // a scalar, 2^26 <= |x| < inf
  Num sine(const Reduced& a);
  Num cosine(const Reduced& a);
  Num sin(Num x);
  Num cos(Num x);
  Num tan(Num x);
  Num atan(Num x);
  Num atan2(Num y, Num x);
  Num asin(Num x);
  Num acos(Num x);
  Num sinh(Num x);
  Num cosh(Num x);
  Num asinh(Num x);
  Num acosh(Num x);
  Num atanh(Num x);

  // math_power.cc
  struct Double2 {
    Num high, low;  // an unevaluated sum
  };
  Double2 sum(Num a, Num b);
  Double2 product(Num a, Num b);
  Double2 precise_log(Num x);  // of a positive, finite f64
  Num pow(Num x, Num y, bool precise);
  Num remainder(Num x, Num y);  // scalar f64

  Num f64_function(loop::UnaryOp op, Num x);
  Num any(Num mask);
  Num table(const char* name, llvm::ArrayRef<double> values, Num index);

  llvm::Module& module_;
  Num from_half(Num bits);
  Num to_half(Num x);
  Num from_bfloat(Num bits);
  Num to_bfloat(Num x);

  bool has_fma_, has_rounding_, has_half_conversion_, has_scaling_;
  std::function<void(llvm::Function*)> prepare_;
};

}  // namespace tenon::codegen

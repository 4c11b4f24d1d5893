// Arithmetic on LLVM values with C++ operators, so that the functions in math*.cc read like
// formulas.
//
// A Num is a scalar or a vector of floats, integers or booleans; a constant takes the type of the
// other operand. Private to this folder: it exposes LLVM types.
#pragma once

#include <cstdint>

#include "llvm/IR/IRBuilder.h"

namespace tenon::codegen {

using Builder = llvm::IRBuilder<>;

struct Num {
  Builder* b = nullptr;
  llvm::Value* v = nullptr;

  llvm::Type* type() const { return v->getType(); }
  bool is_f32() const { return type()->getScalarType()->isFloatTy(); }
  unsigned bits() const { return type()->getScalarSizeInBits(); }
  Num with(llvm::Value* value) const { return {b, value}; }
  // Constants of this type.
  Num f(double c) const { return with(llvm::ConstantFP::get(type(), c)); }
  Num i(uint64_t c) const { return with(llvm::ConstantInt::get(type(), c)); }
  // This shape (lanes) with another element type.
  llvm::Type* shape_of(llvm::Type* element) const {
    auto* vector = llvm::dyn_cast<llvm::VectorType>(type());
    return vector ? llvm::VectorType::get(element, vector->getElementCount()) : element;
  }
  Num int_bits() const {  // the same bits as an integer
    return with(b->CreateBitCast(v, shape_of(b->getIntNTy(bits()))));
  }
  Num float_bits() const {
    return with(b->CreateBitCast(v, shape_of(bits() == 32 ? b->getFloatTy() : b->getDoubleTy())));
  }
  Num to_f64() const {
    return is_f32() ? with(b->CreateFPExt(v, shape_of(b->getDoubleTy()))) : *this;
  }
  Num to_f32() const {
    return is_f32() ? *this : with(b->CreateFPTrunc(v, shape_of(b->getFloatTy())));
  }
  // A signed integer, converted to the floating-point type `element`.
  Num to_float(llvm::Type* element) const { return with(b->CreateSIToFP(v, shape_of(element))); }
};

inline Num operator+(Num a, Num c) {
  return a.with(a.b->CreateFAdd(a.v, c.v));
}
inline Num operator-(Num a, Num c) {
  return a.with(a.b->CreateFSub(a.v, c.v));
}
inline Num operator*(Num a, Num c) {
  return a.with(a.b->CreateFMul(a.v, c.v));
}
inline Num operator/(Num a, Num c) {
  return a.with(a.b->CreateFDiv(a.v, c.v));
}
inline Num operator-(Num a) {
  return a.with(a.b->CreateFNeg(a.v));
}
inline Num operator+(Num a, double c) {
  return a + a.f(c);
}
inline Num operator-(Num a, double c) {
  return a - a.f(c);
}
inline Num operator*(Num a, double c) {
  return a * a.f(c);
}
inline Num operator-(double c, Num a) {
  return a.f(c) - a;
}
inline Num operator+(double c, Num a) {
  return a.f(c) + a;
}
inline Num operator*(double c, Num a) {
  return a.f(c) * a;
}
inline Num operator/(double c, Num a) {
  return a.f(c) / a;
}

// Ordered comparisons: false if an operand is NaN.
inline Num operator<(Num a, Num c) {
  return a.with(a.b->CreateFCmpOLT(a.v, c.v));
}
inline Num operator>(Num a, Num c) {
  return a.with(a.b->CreateFCmpOGT(a.v, c.v));
}
inline Num operator>=(Num a, Num c) {
  return a.with(a.b->CreateFCmpOGE(a.v, c.v));
}
inline Num operator==(Num a, Num c) {
  return a.with(a.b->CreateFCmpOEQ(a.v, c.v));
}
inline Num operator<(Num a, double c) {
  return a < a.f(c);
}
inline Num operator>(Num a, double c) {
  return a > a.f(c);
}
inline Num operator>=(Num a, double c) {
  return a >= a.f(c);
}
inline Num operator==(Num a, double c) {
  return a == a.f(c);
}
inline Num is_nan(Num a) {
  return a.with(a.b->CreateFCmpUNO(a.v, a.v));
}

// For integers and booleans.
inline Num operator&(Num a, Num c) {
  return a.with(a.b->CreateAnd(a.v, c.v));
}
inline Num operator|(Num a, Num c) {
  return a.with(a.b->CreateOr(a.v, c.v));
}
inline Num operator^(Num a, Num c) {
  return a.with(a.b->CreateXor(a.v, c.v));
}
inline Num operator!(Num a) {
  return a.with(a.b->CreateNot(a.v));
}
inline Num add(Num a, Num c) {
  return a.with(a.b->CreateAdd(a.v, c.v));
}
inline Num sub(Num a, Num c) {
  return a.with(a.b->CreateSub(a.v, c.v));
}
inline Num mul(Num a, Num c) {
  return a.with(a.b->CreateMul(a.v, c.v));
}
inline Num add(Num a, uint64_t c) {
  return add(a, a.i(c));
}
inline Num sub(Num a, uint64_t c) {
  return sub(a, a.i(c));
}
inline Num shl(Num a, uint64_t n) {
  return a.with(a.b->CreateShl(a.v, a.i(n).v));
}
inline Num lshr(Num a, uint64_t n) {
  return a.with(a.b->CreateLShr(a.v, a.i(n).v));
}
inline Num ashr(Num a, uint64_t n) {
  return a.with(a.b->CreateAShr(a.v, a.i(n).v));
}
inline Num operator&(Num a, uint64_t c) {
  return a & a.i(c);
}
inline Num operator|(Num a, uint64_t c) {
  return a | a.i(c);
}
inline Num same(Num a, Num c) {
  return a.with(a.b->CreateICmpEQ(a.v, c.v));
}
inline Num same(Num a, uint64_t c) {
  return same(a, a.i(c));
}
inline Num below(Num a, Num c) {
  return a.with(a.b->CreateICmpULT(a.v, c.v));
}
inline Num below(Num a, uint64_t c) {
  return below(a, a.i(c));
}

inline Num pick(Num condition, Num yes, Num no) {
  return yes.with(yes.b->CreateSelect(condition.v, yes.v, no.v));
}
inline Num pick(Num condition, double yes, Num no) {
  return pick(condition, no.f(yes), no);
}
inline Num pick(Num condition, Num yes, double no) {
  return pick(condition, yes, yes.f(no));
}

inline Num intrinsic(llvm::Intrinsic::ID id, Num a) {
  return a.with(a.b->CreateUnaryIntrinsic(id, a.v));
}
inline Num absolute(Num a) {
  return intrinsic(llvm::Intrinsic::fabs, a);
}
inline Num square_root(Num a) {
  return intrinsic(llvm::Intrinsic::sqrt, a);
}
inline Num copy_sign(Num magnitude, Num sign) {
  return magnitude.with(
      magnitude.b->CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.v, sign.v));
}
// a * c + d, rounded once if that is fast, otherwise twice.
inline Num mad(Num a, Num c, Num d) {
  return a.with(a.b->CreateIntrinsic(llvm::Intrinsic::fmuladd, {a.type()}, {a.v, c.v, d.v}));
}
inline Num mad(Num a, Num c, double d) {
  return mad(a, c, a.f(d));
}
inline Num mad(Num a, double c, Num d) {
  return mad(a, a.f(c), d);
}

// c[0] + c[1] x + ... + c[n-1] x^(n-1), by Horner's rule.
template <size_t n>
Num polynomial(Num x, const double (&c)[n]) {
  Num sum = x.f(c[n - 1]);
  for (size_t k = n - 1; k-- > 0;) sum = mad(sum, x, c[k]);
  return sum;
}

}  // namespace tenon::codegen

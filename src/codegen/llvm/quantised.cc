#include "codegen/llvm/quantised.h"

#include <cmath>

#include "loop/scalar.h"

namespace tenon::codegen {
namespace {

using loop::BinaryOp;
using loop::ExprKind;

// Adding it rounds a float of magnitude below 2^22 to an integer, ties to even, which is then in
// the low bits of its representation. Its own last 22 bits are 0.
constexpr double kRounder = 0x1.8p23;

const loop::Expr* operand_of_cast(const loop::Expr& e, DataType to) {
  if (e.kind != ExprKind::kCast || e.dtype != to) return nullptr;
  const auto& cast = static_cast<const loop::Cast&>(e);
  return cast.keeps_bits ? nullptr : cast.a.get();
}

const loop::Binary* binary_of(const loop::Expr& e, BinaryOp op) {
  if (e.kind != ExprKind::kBinary) return nullptr;
  const auto& b = static_cast<const loop::Binary&>(e);
  return b.op == op ? &b : nullptr;
}

std::optional<double> number_of(const loop::Expr& e) {
  if (e.kind != ExprKind::kLiteral) return std::nullopt;
  const int64_t bits = static_cast<const loop::Literal&>(e).bits;
  if (e.dtype == i32) return static_cast<double>(static_cast<int32_t>(bits));
  if (e.dtype != f32) return std::nullopt;
  return loop::as_float(bits);
}

double least_of(DataType dtype) {
  return dtype == u8 ? 0 : -128;
}
double greatest_of(DataType dtype) {
  return dtype == u8 ? 255 : 127;
}

// Whether it is a number of that dtype.
bool is_zero_point(const loop::Expr& e, DataType dtype) {
  if (const auto n = number_of(e)) {
    return *n == std::trunc(*n) && *n >= least_of(dtype) && *n <= greatest_of(dtype);
  }
  const loop::Expr* const from = operand_of_cast(e, f32);
  return from != nullptr && from->dtype == dtype;
}

// Whether an f32 and an i32 are the same zero point.
bool is_same_zero_point(const loop::Expr& f, const loop::Expr& i) {
  const auto of_f = number_of(f), of_i = number_of(i);
  if (of_f || of_i) return of_f == of_i;
  const loop::Expr* const a = operand_of_cast(f, f32);
  return a != nullptr && a == operand_of_cast(i, i32);
}

// The float nearest to the quantised number within dtype's range, less the zero point, plus
// kRounder.
llvm::Value* rounded(llvm::IRBuilderBase& b, DataType dtype, llvm::Value* value,
                     llvm::Value* zero) {
  const auto number = [&](double n) { return llvm::ConstantFP::get(value->getType(), n); };
  llvm::Value* low = b.CreateFSub(number(least_of(dtype)), zero);
  llvm::Value* high = b.CreateFSub(number(greatest_of(dtype)), zero);
  if (least_of(dtype) != 0) {  // NaN becomes 0
    value = b.CreateSelect(b.CreateFCmpORD(value, value), value, b.CreateFNeg(zero));
  }
  value = b.CreateSelect(b.CreateFCmpOGT(value, low), value, low);
  value = b.CreateSelect(b.CreateFCmpOLT(value, high), value, high);
  return b.CreateFAdd(value, number(kRounder));
}

}  // namespace

std::optional<Quantised> quantised(const loop::Expr& e) {
  if (e.dtype != u8 && e.dtype != i8) return std::nullopt;
  const loop::Expr* const moved = operand_of_cast(e, e.dtype);
  const loop::Binary* const sum = moved ? binary_of(*moved, BinaryOp::kAdd) : nullptr;
  if (sum == nullptr || sum->dtype != f32 || sum->a->kind != ExprKind::kUnary) return std::nullopt;
  const auto& round = static_cast<const loop::Unary&>(*sum->a);
  if (round.op != loop::UnaryOp::kRoundEven || !is_zero_point(*sum->b, e.dtype))
    return std::nullopt;
  return Quantised{round.a.get(), sum->b.get(), e.dtype};
}

std::optional<Quantised> dequantised(const loop::Expr& e) {
  const loop::Expr* const difference = operand_of_cast(e, f32);
  const loop::Binary* const sub = difference ? binary_of(*difference, BinaryOp::kSub) : nullptr;
  const loop::Expr* const number = sub ? operand_of_cast(*sub->a, i32) : nullptr;
  const auto q = number ? quantised(*number) : std::nullopt;
  return q && is_same_zero_point(*q->zero, *sub->b) ? q : std::nullopt;
}

llvm::Value* quantise(llvm::IRBuilderBase& b, DataType dtype, llvm::Value* value,
                      llvm::Value* zero) {
  llvm::Type* const type = value->getType();
  llvm::Type* const words = type->getWithNewType(b.getInt32Ty());
  const auto bits = [&](llvm::Value* v) { return b.CreateBitCast(v, words); };
  llvm::Value* integer = bits(rounded(b, dtype, value, zero));
  llvm::Value* moved = bits(b.CreateFAdd(zero, llvm::ConstantFP::get(type, kRounder)));
  return b.CreateTrunc(b.CreateAdd(integer, moved), type->getWithNewType(b.getInt8Ty()));
}

llvm::Value* quantise_and_back(llvm::IRBuilderBase& b, DataType dtype, llvm::Value* value,
                               llvm::Value* zero) {
  return b.CreateFSub(rounded(b, dtype, value, zero),
                      llvm::ConstantFP::get(value->getType(), kRounder));
}

}  // namespace tenon::codegen

#include "codegen/llvm/byte_dot.h"

#include "llvm/IR/IntrinsicsX86.h"

namespace tenon::codegen {
namespace {

using llvm::Intrinsic::ID;

// A vector of 32-bit words that instructions of x86, which alone has `pair_products`, take.
struct WordVector {
  unsigned words;
  ID dot;    // adds the products of bytes (VNNI)
  ID pairs;  // the sums of two products of 16-bit numbers
};
constexpr WordVector kWordVectors[] = {
    {16, llvm::Intrinsic::x86_avx512_vpdpbusd_512, llvm::Intrinsic::x86_avx512_pmaddw_d_512},
    {8, llvm::Intrinsic::x86_avx512_vpdpbusd_256, llvm::Intrinsic::x86_avx2_pmadd_wd},
    {4, llvm::Intrinsic::x86_avx512_vpdpbusd_128, llvm::Intrinsic::x86_sse2_pmadd_wd}};

const WordVector* word_vector(const Target& target, const llvm::FixedVectorType& type) {
  if (!target.capabilities.pair_products || !type.getElementType()->isIntegerTy(32)) {
    return nullptr;
  }
  for (const WordVector& each : kWordVectors) {
    if (each.words == type.getNumElements() && each.words * 4 <= target.capabilities.vector_bytes) {
      return &each;
    }
  }
  return nullptr;
}

// The products of the bytes at even places and of those at odd ones, which fit 16 bits as factors.
llvm::Value* by_pairs(llvm::IRBuilderBase& b, const WordVector& v, llvm::Value* sum,
                      llvm::Value* bytes, llvm::Value* signed_bytes) {
  auto* halves = llvm::FixedVectorType::get(b.getInt16Ty(), v.words * 2);
  llvm::Value* x = b.CreateBitCast(bytes, halves);
  llvm::Value* y = b.CreateBitCast(signed_bytes, halves);
  auto* eight = llvm::ConstantInt::get(halves, 8);
  llvm::Value* even = b.CreateIntrinsic(v.pairs, {},
                                        {b.CreateAnd(x, llvm::ConstantInt::get(halves, 255)),
                                         b.CreateAShr(b.CreateShl(y, eight), eight)});
  llvm::Value* odd =
      b.CreateIntrinsic(v.pairs, {}, {b.CreateLShr(x, eight), b.CreateAShr(y, eight)});
  return b.CreateAdd(sum, b.CreateAdd(even, odd));
}

llvm::Value* byte_by_byte(llvm::IRBuilderBase& b, llvm::Value* sum, llvm::Value* bytes,
                          llvm::Value* signed_bytes) {
  llvm::Type* type = sum->getType();
  const unsigned bits = type->getScalarSizeInBits();
  for (unsigned shift = 0; shift < bits; shift += 8) {
    llvm::Value* x = b.CreateAnd(b.CreateLShr(bytes, shift), llvm::ConstantInt::get(type, 255));
    llvm::Value* y = b.CreateAShr(b.CreateShl(signed_bytes, bits - 8 - shift), bits - 8);
    sum = b.CreateAdd(sum, b.CreateMul(x, y));
  }
  return sum;
}

}  // namespace

llvm::Value* byte_dot(llvm::IRBuilderBase& b, const Target& target, llvm::Value* sum,
                      llvm::Value* bytes, llvm::Value* signed_bytes) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(sum->getType());
  const WordVector* v = type != nullptr ? word_vector(target, *type) : nullptr;
  if (v == nullptr) return byte_by_byte(b, sum, bytes, signed_bytes);
  return target.capabilities.dot_products
             ? b.CreateIntrinsic(v->dot, {}, {sum, bytes, signed_bytes})
             : by_pairs(b, *v, sum, bytes, signed_bytes);
}

}  // namespace tenon::codegen

#include "codegen/llvm/element.h"

#include "support/error.h"

namespace tenon::codegen {

namespace {

bool is_16_bit_float(DataType t) {
  return t.is_float() && t.bits == 16;
}

}  // namespace

void no_code(std::string_view what, DataType t) {
  throw Error(ErrorKind::Unsupported, cat("no code for ", what, " of ", t));
}

llvm::Type* register_type(const ModuleWriter& m, DataType t) {
  if (t.lanes == 1) {
    if (t.is_bool()) return m.i1;
    if (t.is_int() && (t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64))
      return llvm::IntegerType::get(m.context, t.bits);
    if (t == f32 || t == f16 || t == bf16) return llvm::Type::getFloatTy(m.context);
    if (t == f64) return llvm::Type::getDoubleTy(m.context);
  }
  no_code("elements", t);
}

llvm::Type* memory_type(const ModuleWriter& m, DataType t) {
  if (t.is_bool()) return m.i8;
  if (is_16_bit_float(t)) return m.i16;
  return register_type(m, t);
}

llvm::Value* from_memory(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t) {
  if (t.is_bool()) return b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (t == f16) return m.math.from_half({&b, v}).v;
  if (t == bf16) return m.math.from_bfloat({&b, v}).v;
  return v;
}

llvm::Value* to_memory(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t) {
  if (t.is_bool()) return b.CreateZExt(v, Num{&b, v}.shape_of(m.i8));
  if (t == f16) return m.math.to_half({&b, v}).v;
  if (t == bf16) return m.math.to_bfloat({&b, v}).v;
  return v;
}

llvm::Value* rounded(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t) {
  return is_16_bit_float(t) ? from_memory(m, b, to_memory(m, b, v, t), t) : v;
}

}  // namespace tenon::codegen

#include "codegen/llvm/element.h"

#include "object/tensor.h"
#include "support/error.h"

namespace tenon::codegen {

void no_code(std::string_view what, DataType t) {
  throw Error(ErrorKind::Unsupported, cat("no code for ", what, " of ", t));
}

llvm::Type* register_type(const ModuleWriter& m, DataType t) {
  if (is_tensor_dtype(t)) {
    if (t.is_bool()) return m.i1;
    // Complex numbers are only moved.
    if (t.is_int() || t.is_complex()) return llvm::IntegerType::get(m.context, t.bits);
    return t == f64 ? llvm::Type::getDoubleTy(m.context) : llvm::Type::getFloatTy(m.context);
  }
  no_code("elements", t);
}

llvm::Type* memory_type(const ModuleWriter& m, DataType t) {
  llvm::Type* type = register_type(m, t);
  const bool same = t == f32 || t == f64;
  return same ? type : llvm::IntegerType::get(m.context, static_cast<unsigned>(8 * t.bytes()));
}

llvm::Value* from_memory(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t) {
  if (t.is_bool()) return b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (t.is_narrow_float()) return m.math.from_narrow({&b, v}, t).v;
  return t.bits < 8 ? b.CreateTrunc(v, Num{&b, v}.shape_of(register_type(m, t))) : v;
}

llvm::Value* to_memory(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t) {
  if (t.is_narrow_float()) return m.math.to_narrow({&b, v}, t).v;
  return t.is_bool() || t.bits < 8
             ? b.CreateIntCast(v, Num{&b, v}.shape_of(m.i8), t.is_signed_int())
             : v;
}

llvm::Value* rounded(ModuleWriter& m, Builder& b, llvm::Value* v, DataType t) {
  return t.is_narrow_float() ? from_memory(m, b, to_memory(m, b, v, t), t) : v;
}

}  // namespace tenon::codegen

// LLVM's types for the C types of the ABIs (vm/executable/kernel_abi.h and code_abi.h), so that
// generated code calls the runtime as the headers declare it. Private to this folder: it exposes
// LLVM types.
#pragma once

#include <type_traits>

#include "llvm/IR/Attributes.h"
#include "llvm/IR/DerivedTypes.h"
#include "vm/executable/kernel_abi.h"

namespace tenon::codegen {

template <class T>
llvm::Type* abi_type(llvm::LLVMContext& context) {
  if constexpr (std::is_void_v<T>) {
    return llvm::Type::getVoidTy(context);
  } else if constexpr (std::is_pointer_v<T>) {
    return llvm::PointerType::get(context, 0);
  } else {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    static_assert(sizeof(T) >= 4, "extend_integers extends no smaller ones");
    return llvm::IntegerType::get(context, 8 * sizeof(T));
  }
}

template <class Result, class... Parameters>
llvm::FunctionType* abi_function(llvm::LLVMContext& context, Result (*)(Parameters...)) {
  return llvm::FunctionType::get(abi_type<Result>(context), {abi_type<Parameters>(context)...},
                                 false);
}
// The type of functions that a pointer type such as KernelBody points to.
template <class Pointer>
llvm::FunctionType* abi_function(llvm::LLVMContext& context) {
  return abi_function(context, Pointer{});
}

// Marks the 32-bit integers of a C function or a call of one as sign-extended to a register, even
// if they are unsigned. RISC-V's ABI requires that; those of the other architectures ignore it.
template <class FunctionOrCall>
void extend_integers(FunctionOrCall* f) {
  const llvm::FunctionType* type = f->getFunctionType();
  if (type->getReturnType()->isIntegerTy(32)) f->addRetAttr(llvm::Attribute::SExt);
  for (unsigned i = 0; i < type->getNumParams(); ++i) {
    if (type->getParamType(i)->isIntegerTy(32)) f->addParamAttr(i, llvm::Attribute::SExt);
  }
}

// The offset of a member of a table of functions, such as KernelRuntime.
template <class Table, class Member>
int64_t offset_in_table(Member Table::*member) {
  static constexpr Table layout{};
  return reinterpret_cast<const char*>(&(layout.*member)) - reinterpret_cast<const char*>(&layout);
}

}  // namespace tenon::codegen

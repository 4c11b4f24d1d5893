// An LLVM module under construction: its types, functions and constants, and calls of the runtime.
// Private to this folder: it exposes LLVM types.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "codegen/llvm/abi.h"
#include "codegen/llvm/math.h"
#include "codegen/llvm/target.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "loop/kernel.h"
#include "vm/executable/kernel_abi.h"

namespace tenon::codegen {

// The argument of a call for one parameter in C++.
template <class Parameter>
struct ArgumentFor {
  using Type = llvm::Value*;
};

struct ModuleWriter {
  ModuleWriter(llvm::Module& m, const Target& t, bool clear_scratch);

  llvm::Module& module;
  llvm::LLVMContext& context;
  const Target& target;
  const bool clear_scratch;  // EmitOptions
  Math math;
  llvm::IntegerType *i1, *i8, *i16, *i32, *i64;
  llvm::PointerType* pointer;

  void prepare(llvm::Function* function) const;  // sets target and other attributes
  llvm::Function* function(llvm::FunctionType* type, const std::string& name);
  // One that the runtime calls through a pointer such as KernelBody.
  template <class Pointer>
  llvm::Function* called_function(const std::string& name) {
    llvm::Function* f = function(abi_function<Pointer>(context), name);
    extend_integers(f);
    return f;
  }
  llvm::Constant* text(std::string_view text);  // NUL-terminated, shared
  llvm::Value* field(Builder& b, llvm::Type* type, llvm::Value* base, int64_t offset) const;
  // Calls a function of the runtime, such as &KernelRuntime::poll, with the arguments after `self`.
  template <class Result, class... Parameters>
  llvm::CallInst* call(Builder& b, llvm::Value* runtime,
                       Result (*vm::KernelRuntime::*function)(const vm::KernelRuntime* self,
                                                              Parameters...),
                       typename ArgumentFor<Parameters>::Type... arguments) const {
    llvm::Value* address = field(b, pointer, runtime, offset_in_table(function));
    auto* type = abi_function<Result (*)(const vm::KernelRuntime*, Parameters...)>(context);
    llvm::CallInst* made = b.CreateCall(type, address, {runtime, arguments...});
    extend_integers(made);
    return made;
  }
  // Calls raise(...); the result is an i32 and never 0.
  llvm::Value* raise(Builder& b, llvm::Value* runtime, const loop::Kernel& kernel,
                     vm::KernelError code, int32_t argument, int32_t axis, llvm::Value* found,
                     llvm::Value* expected);
  llvm::MDNode* unlikely() const {
    return llvm::MDBuilder(context).createBranchWeights(1, 1 << 20);
  }
  // A private constant; equal ones may share an address.
  llvm::GlobalVariable* constant(llvm::Constant* data, const char* name);
  // See entry_layout.h. Declared here, written by write_checks.
  llvm::Function* check();
  llvm::Function* refuse();

 private:
  llvm::Function* shared_function(const char* name);

  std::map<std::string, llvm::Constant*, std::less<>> texts_;
};

// LLVM's text for the features of a target: "+sse3,+ssse3".
std::string feature_text(const Target& target);

}  // namespace tenon::codegen

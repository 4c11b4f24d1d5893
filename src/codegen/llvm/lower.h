// The translation of a kernel into LLVM IR functions: declarations shared by all its files.
//
// clang-format off
//   emit.cc        the module: attributes, object file, table; passes: LLVM's
//   entry.cc       the packed entry, which checks every argument; refuse.cc reports what was wrong
//   code_size      refuses kernels that need too much code
//   stack_use      refuses kernels that need too much native stack
//   nesting.cc     refuses kernels that are nested too deeply
//   body.cc        the body, composed of
//     function       the LLVM function: entry and exit, values in scope (Env), sizes, errors
//     facts          facts about expressions, known before they are emitted
//     statement      loops, choices, variables, stores; parallel.cc turns parallel loops into tasks
//     interrupt      lets loops be stopped
//     scratch        storage that statements allocate
//     expression     scalar expressions, for one element or one vector of lanes
//     operator       their operators, on evaluated operands
//     memory         loads and stores; element: dtypes in registers and memory; alias: alias scopes
//     work           estimates how much work a loop is
//   size           sizes: expressions of symbols
//   abi.h          LLVM's types for those of the kernel ABI
//   math*.cc       the mathematical functions; numeric.h: LLVM values with C++ operators
// clang-format on
//
// A body is `i32 (runtime*, buffer pointers..., symbols as i64...)`: it returns 0 or what raise
// returned. Private to this folder: it exposes LLVM types.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "codegen/llvm/abi.h"
#include "codegen/llvm/code_size.h"
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
  llvm::Constant* text(std::string_view text);  // NUL-terminated, shared
  llvm::Value* field(Builder& b, llvm::Type* type, llvm::Value* base, int64_t offset) const;
  // Calls a function of the runtime, such as &KernelRuntime::poll, with the arguments after `self`.
  template <class Result, class... Parameters>
  llvm::CallInst* call(Builder& b, llvm::Value* runtime,
                       Result (*vm::KernelRuntime::*function)(const vm::KernelRuntime* self,
                                                              Parameters...),
                       typename ArgumentFor<Parameters>::Type... arguments) const {
    llvm::Value* address = field(b, pointer, runtime, runtime_offset(function));
    auto* type = abi_function<Result (*)(const vm::KernelRuntime*, Parameters...)>(context);
    return b.CreateCall(type, address, {runtime, arguments...});
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

// Throws an Unsupported error for a kernel with expressions too deep for the native stack, since
// the translation recurses over them. A variable has the depth of the value that its `let` binds,
// since facts about it are derived from that value.
void check_nesting(const loop::Kernel& kernel);

// Writes the entry `i32 NAME(void* runtime, const Any* args, i32 n, Any* result)` for a body.
llvm::Function* write_entry(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* body,
                            CodeSize& size);
void write_checks(ModuleWriter& m);  // the bodies of check and refuse
// The base name of the kernel's functions. LLVM reserves names that begin with "llvm.".
std::string symbol_of(const loop::Kernel& kernel);
llvm::Function* write_body(ModuleWriter& m, const loop::Kernel& kernel, CodeSize& size);
}  // namespace tenon::codegen

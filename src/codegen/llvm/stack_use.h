// The native stack that kernels need: the frames of their functions, which hold stack buffers and
// spilled registers, along the deepest chain of calls. Private to this folder: it exposes LLVM
// types.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Module.h"
#include "support/error.h"

namespace tenon::codegen {

// The error for a kernel that needs `bytes`, more than vm::kKernelStack.
Error too_much_stack(std::string_view kernel, uint64_t bytes);

// Collects what LLVM reports while it generates a module's code: the functions' frames, and errors,
// which it would otherwise answer by ending the process.
class StackUse {
 public:
  // Both must outlive the code generation.
  explicit StackUse(llvm::Module& module);
  // After code was generated. Throws Error (Unsupported) for an entry (see emit.cc) that needs more
  // than vm::kKernelStack, Internal for an error that LLVM reported. `entries` gives the kernels'
  // names.
  void check(const std::map<const llvm::Function*, std::string>& entries);

 private:
  static void note(const llvm::DiagnosticInfo* info, void* self);
  uint64_t needed(const llvm::Function& f);

  llvm::Module& module_;
  std::map<const llvm::Function*, uint64_t> frames_, needed_;
  std::string error_;
};

}  // namespace tenon::codegen

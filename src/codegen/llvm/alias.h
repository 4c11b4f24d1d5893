// Alias information for LLVM: an access touches only its own buffer and those that may share its
// memory in place. Private to this folder: it exposes LLVM types.
#pragma once

#include <unordered_map>

#include "llvm/IR/Instruction.h"
#include "loop/kernel.h"

namespace tenon::codegen {

class AliasScopes {
 public:
  // Covers every buffer of the kernel, or none if there are many, since the lists grow
  // quadratically.
  AliasScopes(llvm::LLVMContext& context, const loop::Kernel& kernel);
  void annotate(llvm::Instruction* access, const loop::Buffer& buffer) const;

 private:
  struct Scopes {
    llvm::MDNode *own = nullptr, *others = nullptr;
  };
  std::unordered_map<const loop::Buffer*, Scopes> scopes_;
};

}  // namespace tenon::codegen

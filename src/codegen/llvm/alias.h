// Tells LLVM which buffers an access can't touch: all but its own and those that may share its
// memory in place. Private to this folder: it shows LLVM types.
#pragma once

#include <unordered_map>

#include "llvm/IR/Instruction.h"
#include "loop/kernel.h"

namespace tenon::codegen {

class AliasScopes {
 public:
  // Of every buffer in the kernel; of none where it has many, since the lists grow with the square.
  AliasScopes(llvm::LLVMContext& context, const loop::Kernel& kernel);
  void annotate(llvm::Instruction* access, const loop::Buffer& buffer) const;

 private:
  struct Scopes {
    llvm::MDNode *own = nullptr, *others = nullptr;
  };
  std::unordered_map<const loop::Buffer*, Scopes> scopes_;
};

}  // namespace tenon::codegen

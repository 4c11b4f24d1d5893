// LLVM's passes. The thread's work is polled (support/poll.h) between passes and between functions;
// when it is to stop, the rest is skipped and the Poller's error thrown. Private to this folder: it
// exposes LLVM types.
#pragma once

#include <string>

#include "codegen/llvm/emit.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace tenon::codegen {

void optimise(llvm::Module& module, llvm::TargetMachine& machine, Optimisation level);
// The module as an object file or as assembly. The module can't be used afterwards.
std::string generate(llvm::Module& module, llvm::TargetMachine& machine,
                     llvm::CodeGenFileType type);

}  // namespace tenon::codegen

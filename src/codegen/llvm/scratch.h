// The storage of buffers that statements allocate. Private to this folder: it exposes LLVM types.
#pragma once

#include <unordered_map>

#include "codegen/llvm/facts.h"
#include "codegen/llvm/function.h"

namespace tenon::codegen {

// Reserves storage for every Alloc in `body` at the start of the function, and returns the
// addresses. Buffers in a parallel loop within `body` are left to its task. Buffers of small
// constant size are on the stack, where unrolled accesses become registers; the others share one
// block of the runtime's workspace, and if there is no memory the function returns the runtime's
// error.
std::unordered_map<const loop::Buffer*, llvm::Value*> reserve_scratch(FunctionWriter& f,
                                                                      const Facts& facts,
                                                                      const loop::StmtRef& body);

}  // namespace tenon::codegen

// The storage of the buffers that statements allocate. Private to this folder: it shows LLVM types.
#pragma once

#include <unordered_map>

#include "codegen/llvm/facts.h"
#include "codegen/llvm/function.h"

namespace tenon::codegen {

// Reserves storage for every Alloc in `body` when the function begins, and returns the addresses.
// Those in a parallel loop within `body` are left to its task. Buffers of small constant size lie
// on the stack, where unrolled accesses turn into registers; the others share one piece of the
// runtime's workspace, and without enough memory the function returns the runtime's error.
std::unordered_map<const loop::Buffer*, llvm::Value*> reserve_scratch(FunctionWriter& f,
                                                                      const Facts& facts,
                                                                      const loop::StmtRef& body);

}  // namespace tenon::codegen

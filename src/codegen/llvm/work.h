// Estimates how much work a loop is, while the kernel runs, when the sizes are known. Private to
// this folder: it exposes LLVM types.
#pragma once

#include <cstdint>

#include "codegen/llvm/function.h"

namespace tenon::codegen {

// Work is counted in scalar operations; kLanesOfWork of them count as one in a vector loop.
inline constexpr int64_t kLanesOfWork = 8;

// From this much work on, a few microseconds, it is worth it to share a loop between threads: with
// less, one thread is done before another has begun.
inline constexpr int64_t kWorthThreads = 1 << 15;

// Of the value and of the store itself.
int64_t work_of_store(const loop::Store& store);

// Emits the work of one turn of a loop that begins at `begin`, at least 1: that of its first turn,
// which stands for the others. Beyond kWorthThreads it isn't exact.
llvm::Value* work_per_turn(FunctionWriter& f, const loop::For& loop, llvm::Value* begin);

}  // namespace tenon::codegen

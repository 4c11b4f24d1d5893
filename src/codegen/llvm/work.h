// Estimates how much work a loop is, while the kernel runs, when the sizes are known. Private to
// this folder: it exposes LLVM types.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/llvm/function.h"

namespace tenon::codegen {

// Work is counted in scalar operations; in a vector loop, and in each loop over a matrix,
// kLanesOfWork operations count as one.
inline constexpr int64_t kLanesOfWork = 8;
inline bool runs_lanes_at_once(const loop::For& loop) {
  return loop.loop == loop::ForKind::kVector || loop.loop == loop::ForKind::kMatrix;
}

// From this much work on (a few microseconds), distributing a loop over threads pays off: with
// less, one thread is done before another has started.
inline constexpr int64_t kWorthThreads = 1 << 15;

// Emits the work of one iteration of a loop that begins at `begin`, at least 1, taken from the
// first iteration. Not exact beyond kWorthThreads.
llvm::Value* work_per_turn(FunctionWriter& f, const loop::For& loop, llvm::Value* begin);

// The parallel loops in a serial one.
std::vector<const loop::For*> parallel_loops_in(const loop::For& loop);
// Emits whether one of them is worth threads, an i1. The loop begins at `begin`.
llvm::Value* is_worth_threads(FunctionWriter& f, const loop::For& loop, llvm::Value* begin);

}  // namespace tenon::codegen

// How much code a kernel needs, counted while it is written. LLVM takes more than linear time and
// can't be stopped within a function, so a kernel that would take longer than a few seconds is
// refused instead. A short text may need very much code: unrolled loops, lanes and selects repeat
// expressions, and each parallel loop's task reads every value in scope.
#pragma once

#include <cstdint>
#include <string_view>

#include "loop/kernel.h"

namespace tenon::codegen {

// Of all functions of one kernel. Each function throws Error (Unsupported) if that is too much.
class CodeSize {
 public:
  explicit CodeSize(const loop::Kernel& kernel) : kernel_(kernel) {}

  void add_block();
  // Of one function. It computes sizes at its entry, and they are live in the blocks that follow.
  void require_few(int64_t blocks, int64_t sizes) const;
  // In units of loop/cost.h, in all lanes.
  void add_cost(int64_t cost);
  // They are all live at once, from the entry's checks to the call of the body.
  void add_parameters(size_t tensors_and_integers, size_t symbols);

 private:
  void require(int64_t found, int64_t most, std::string_view what, std::string_view help) const;

  const loop::Kernel& kernel_;
  int64_t blocks_ = 0, cost_ = 0;
};

}  // namespace tenon::codegen

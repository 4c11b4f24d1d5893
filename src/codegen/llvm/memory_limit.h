// What happens where LLVM finds no memory. An exception from `new` would leave its objects half
// changed, and destroying them would corrupt memory.
#pragma once

namespace tenon::codegen {

// While one exists, lack of memory on its thread ends the process, in LLVM's own allocations as in
// all others. Elsewhere `new` throws, or does what the host's new-handler does.
class FatalAllocationScope {
 public:
  FatalAllocationScope();
  FatalAllocationScope(const FatalAllocationScope&) = delete;
  FatalAllocationScope& operator=(const FatalAllocationScope&) = delete;
  ~FatalAllocationScope();
};

// For a program, once: from now on `handler`, which must not return and can't allocate, ends the
// process. LLVM's own prints a message and aborts.
void handle_exhausted_memory(void (*handler)());

}  // namespace tenon::codegen

// What LLVM does where it finds no memory.
#pragma once

namespace tenon::codegen {

// For a process with a memory limit, once: from now on `handler`, which must not return, is called
// where LLVM's own allocations fail. LLVM would print a message and abort.
void handle_exhausted_memory(void (*handler)());

}  // namespace tenon::codegen

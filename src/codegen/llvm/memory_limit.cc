#include "codegen/llvm/memory_limit.h"

#include <llvm/Support/ErrorHandling.h>

namespace tenon::codegen {

void handle_exhausted_memory(void (*handler)()) {
  static void (*chosen)() = nullptr;
  chosen = handler;
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { chosen(); });
}

}  // namespace tenon::codegen

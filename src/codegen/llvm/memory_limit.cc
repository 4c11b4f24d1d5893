#include "codegen/llvm/memory_limit.h"

#include <llvm/Support/ErrorHandling.h>

#include <atomic>
#include <mutex>
#include <new>

namespace tenon::codegen {
namespace {

thread_local int scopes_of_thread = 0;

std::mutex mutex;
int scopes = 0;                                         // of all threads; the mutex guards it
std::atomic<std::new_handler> outer_handler = nullptr;  // the one that was set before the first

void on_failed_allocation() {
  if (scopes_of_thread > 0) llvm::report_bad_alloc_error("out of memory", false);
  const std::new_handler outer = outer_handler;
  if (!outer) throw std::bad_alloc();
  outer();
}

}  // namespace

FatalAllocationScope::FatalAllocationScope() {
  const std::lock_guard lock(mutex);
  if (scopes++ == 0) outer_handler = std::set_new_handler(on_failed_allocation);
  ++scopes_of_thread;
}

FatalAllocationScope::~FatalAllocationScope() {
  const std::lock_guard lock(mutex);
  --scopes_of_thread;
  // Unless the host has set another meanwhile.
  if (--scopes == 0 && std::get_new_handler() == on_failed_allocation) {
    std::set_new_handler(outer_handler);
  }
}

void handle_exhausted_memory(void (*handler)()) {
  static void (*chosen)() = nullptr;
  chosen = handler;
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { chosen(); });
}

}  // namespace tenon::codegen

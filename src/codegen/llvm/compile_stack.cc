#include "codegen/llvm/compile_stack.h"

#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <exception>

#include "object/object_budget.h"
#include "support/error.h"
#include "support/native_stack.h"
#include "support/phase.h"
#include "support/poll.h"

namespace tenon::codegen {
namespace {

constexpr size_t kThreadStack = kCompileStack + (size_t{2} << 20);

// A body on its way to another thread, with the state of its own one. That waits, so nothing is
// used by two threads at once.
struct Moved {
  const std::function<void()>& body;
  Poller* poller = Poller::current();
  PhaseTimes* times = PhaseTimes::current();
  ObjectBudget* objects = detail::object_budget;
  std::exception_ptr failure{};

  void run() noexcept {
    const Poller::Scope poller_scope(poller);
    const PhaseTimes::Scope times_scope(times);
    detail::object_budget = objects;  // until the thread ends
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }
};

// Returns an errno value.
int run_on_new_thread(Moved& moved) {
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes)) return error;
  pthread_t thread;
  int error = pthread_attr_setstacksize(&attributes, kThreadStack);
  if (!error) {
    error = pthread_create(
        &thread, &attributes,
        [](void* argument) -> void* {
          static_cast<Moved*>(argument)->run();
          return nullptr;
        },
        &moved);
  }
  pthread_attr_destroy(&attributes);
  return error ? error : pthread_join(thread, nullptr);
}

}  // namespace

void run_with_compile_stack(const std::function<void()>& body) {
  const size_t left = native_stack_left();
  if (left >= kCompileStack && left != SIZE_MAX) return body();
  Moved moved{body};
  if (const int error = run_on_new_thread(moved)) {
    throw Error::of_system(ErrorKind::Runtime, "no thread can be started for compiling kernels",
                           error)
        .help(cat("compile on a thread with at least ", bytes_text(kThreadStack), " of stack"));
  }
  if (moved.failure) std::rethrow_exception(moved.failure);
}

}  // namespace tenon::codegen

#include "library/onednn/signal_stack.h"

#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <memory>

namespace tenon::onednn {
namespace {

// Installed as long as the thread lives.
class SignalStack {
 public:
  SignalStack() {
    stack_t before{};
    if (sigaltstack(nullptr, &before) != 0 || !(before.ss_flags & SS_DISABLE)) return;
    // Enough for the registers, which the system stores there, and for a handler that prints.
    const auto size = static_cast<size_t>(std::max(64L << 10, 2 * sysconf(_SC_SIGSTKSZ)));
    memory_ = std::make_unique_for_overwrite<char[]>(size);
    stack_t own{};
    own.ss_sp = memory_.get();
    own.ss_size = size;
    if (sigaltstack(&own, nullptr) != 0) memory_.reset();
  }
  ~SignalStack() {
    stack_t now{};
    if (!memory_ || sigaltstack(nullptr, &now) != 0 || now.ss_sp != memory_.get()) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    if (sigaltstack(&none, nullptr) != 0) (void)memory_.release();  // a handler runs there
  }
  SignalStack(const SignalStack&) = delete;

 private:
  std::unique_ptr<char[]> memory_;
};

void ensure_signal_stack() {
  static thread_local const SignalStack stack;
}

}  // namespace

void ensure_signal_stacks(int32_t threads) {
  static thread_local int32_t ensured = 0;
  if (ensured >= threads) return;
  if (threads > 1) {
#pragma omp parallel num_threads(threads)
    ensure_signal_stack();
  } else {
    ensure_signal_stack();
  }
  ensured = threads;
}

}  // namespace tenon::onednn

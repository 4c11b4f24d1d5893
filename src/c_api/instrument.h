// An instrument of the host, as tenon_machine_set_instrument takes it.
#pragma once

#include <atomic>
#include <vector>

#include "tenon/c_api.h"
#include "vm/interp/machine.h"

namespace tenon::c_api {

class HostInstrument {
 public:
  // Takes over `context`, for which `release` (NULL for none) is called at the end.
  HostInstrument(const vm::Machine& machine, tenon_instrument call, void* context,
                 void (*release)(void*))
      : machine_(machine), call_(call), context_(context), release_(release) {}
  ~HostInstrument() {
    if (release_) release_(context_);
  }
  HostInstrument(const HostInstrument&) = delete;

  vm::CallAction see(const vm::CallEvent& event);

  // Around a call of the machine; fails like the call if another thread's is running. Forgets at
  // its end the calls that began meanwhile and didn't return, because of an error.
  class Scope {
   public:
    explicit Scope(HostInstrument* of);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    HostInstrument* of_;
    const void* around_ = nullptr;  // `thread_` before
    size_t size_ = 0;
  };

 private:
  // A call that has begun, innermost last: the machine doesn't keep its arguments for its end.
  struct Running {
    uint32_t depth = 0;
    Any function;
    std::vector<Any> args;
  };

  const vm::Machine& machine_;
  tenon_instrument call_;
  void* context_;
  void (*release_)(void*);
  std::atomic<const void*> thread_{nullptr};  // whose call is running; from Pool::this_thread
  std::vector<Running> running_;
};

}  // namespace tenon::c_api

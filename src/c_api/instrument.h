// An instrument of the host, as tenon_machine_set_instrument takes it.
#pragma once

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

  // Forgets at its end the calls that began meanwhile and didn't return, because of an error.
  class Scope {
   public:
    explicit Scope(HostInstrument* of) : of_(of), size_(of ? of->running_.size() : 0) {}
    ~Scope() {
      if (of_) of_->running_.resize(std::min(size_, of_->running_.size()));
    }
    Scope(const Scope&) = delete;

   private:
    HostInstrument* of_;
    size_t size_;
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
  std::vector<Running> running_;
};

}  // namespace tenon::c_api

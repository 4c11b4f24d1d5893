// Signals while Tenon computes. Python runs the handlers of signals on its main thread between two
// steps of Python code, so a call into Tenon must ask for them: every 20 ms, a thread of ours has
// the runtime ask the main thread's call (tenon_host_check_request), which runs the handlers under
// the GIL. If one raises, such as Ctrl-C's, the call stops with that exception.
#pragma once

#include "tenon/c_api.h"

namespace tenon::python {

// While it lives, a call of this machine or function on Python's main thread is asked; on other
// threads, it does nothing.
class SignalWatch {
 public:
  explicit SignalWatch(const tenon_any* machine_or_function);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  const tenon_any* outer_ = nullptr;  // of the call around this one
  bool is_of_main_thread_;
};

// Called once, with the GIL, when the module is imported.
void check_signals_while_computing();

}  // namespace tenon::python

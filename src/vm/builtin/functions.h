// The parts of this folder: each source registers its functions with their rows of
// library/signatures.
#pragma once

#include "device/call_context.h"
#include "library/signatures/registration.h"

namespace tenon::vm {

// The first argument of a function that may change it: nothing else references the value if it may
// be changed in place. Nothing may be read from it, or from arguments that may share it,
// afterwards.
inline Any take_first(const library::PlainFunction& function, const AnyView* args) {
  CallContext* call = CallContext::current();
  return call ? call->take(&function, args, 0) : Any(args[0]);
}

void register_arrays(Registration& functions);
void register_tensors(Registration& functions);
void register_strings(Registration& functions);
void register_returned(Registration& functions);

}  // namespace tenon::vm

// The parts of this folder: each source registers its functions with their rows of
// library/signatures.
#pragma once

#include "library/signatures/registration.h"

namespace tenon::vm {

void register_arrays(Registration& functions);
void register_tensors(Registration& functions);
void register_strings(Registration& functions);

}  // namespace tenon::vm

// The parts of this library. Each source registers its functions with their rows of
// library/signatures.
#pragma once

#include "library/signatures/registration.h"

namespace tenon::core {

void register_append(Registration& functions);
void register_sizes(Registration& functions);

}  // namespace tenon::core

// The parts of this library. Each source registers its functions with their rows of
// library/signatures.
#pragma once

#include "library/signatures/registration.h"

namespace tenon::ml {

void register_coupling(Registration& functions);
void register_trees(Registration& functions);

}  // namespace tenon::ml

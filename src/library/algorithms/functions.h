// The parts of this library. Each source registers its functions with their rows of
// library/signatures.
#pragma once

#include "library/signatures/registration.h"

namespace tenon::algorithms {

void register_boxes(Registration& functions);
void register_fourier(Registration& functions);
void register_matrix(Registration& functions);
void register_random(Registration& functions);
void register_search(Registration& functions);

}  // namespace tenon::algorithms

// Random arguments for library functions (library/signatures): most are of the kinds in the
// signature, with sizes that fit together for some functions; a few are of any kind and size.
#pragma once

#include <vector>

#include "instruction_generator.h"
#include "library/signatures/signatures.h"
#include "object/any.h"

namespace tenon::fuzz {

// The memory of their tensors comes from aligned_alloc, in blocks of exactly the tensors' sizes.
std::vector<Any> make_arguments(Choices& choices, const library::Signature& function);

}  // namespace tenon::fuzz

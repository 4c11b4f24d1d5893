// Throws for link.cc, which is compiled without RTTI because LLVM may be: a throw there would emit
// its own type information for the class, which linkers refuse next to that of error.cc.
#pragma once

#include "support/error.h"

namespace tenon::codegen {

[[noreturn]] void raise(const Error& error);

}  // namespace tenon::codegen

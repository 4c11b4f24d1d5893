// Throws for link.cc, which is compiled without RTTI, as LLVM may be: there a throw would come with
// type information of its own for the class, which linkers refuse beside that of error.cc.
#pragma once

#include "support/error.h"

namespace tenon::codegen {

[[noreturn]] void raise(const Error& error);

}  // namespace tenon::codegen

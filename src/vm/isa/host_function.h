// Functions of the host as values of a program's function types. Bytecode that calls a function
// value relies on the declared type of its result, which only a program's own functions keep to.
#pragma once

#include "object/function.h"
#include "vm/isa/signature.h"

namespace tenon::vm {

// A function as a value of that function type, which `owner` keeps alive. One of the host, or of a
// program that declares another result, becomes a function whose results are conformed to their
// type (signature_match.h) and that throws Runtime where one doesn't fit it; symbolic sizes aren't
// compared.
Function held_to(const SignatureType& type, const Ref<const Object>& owner,
                 const Function& function);

}  // namespace tenon::vm

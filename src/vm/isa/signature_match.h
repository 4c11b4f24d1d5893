// Compares values with the types of signatures.
#pragma once

#include <string>
#include <string_view>

#include "object/any.h"
#include "vm/isa/signature.h"

namespace tenon::vm {

// Whether the value is of that kind, element type, rank and constant sizes: an integer in the
// type's range, a boolean, or a float, where none stands for another. Symbolic sizes and what is in
// a tuple, an array or a cell aren't compared.
bool fits(const SignatureType& type, const AnyView& value);

// The value as an error says what was found where the type is expected.
std::string found_text(const SignatureType& type, const AnyView& value);

// Throws Runtime if the value doesn't fit the type, or a part of a tuple its part's: "function 'f'
// returned as result 1 a value that doesn't fit its declared type", where the last words are
// `what`.
void require_returned(std::string_view function, const SignatureType& type, const AnyView& value,
                      std::string_view what);

}  // namespace tenon::vm

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

// The value as an error says what was found; where the type is expected, a number of the right kind
// itself, which is out of range.
std::string found_text(const AnyView& value);
std::string found_text(const SignatureType& type, const AnyView& value);

// "function 'f' returned as result 1 a value that ...": `what` are the last words, and `part` the
// result's number, -1 for a function's only one.
std::string returned_text(std::string_view function, int64_t part, std::string_view what);
inline constexpr char kOfDeclaredType[] = "a value that doesn't fit its declared type";
// Throws Runtime with this text if the value doesn't fit the type, or a part of a tuple its part's.
void require_returned(std::string_view function, const SignatureType& type, const AnyView& value,
                      std::string_view what);

}  // namespace tenon::vm

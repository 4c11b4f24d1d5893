// Compares values with the types of signatures.
#pragma once

#include <string>
#include <string_view>

#include "object/any.h"
#include "support/error.h"
#include "vm/isa/signature.h"

namespace tenon::vm {

// Whether the value is of that kind, element type, rank and constant sizes. Integers (in the type's
// range), booleans and floats don't stand for each other. Symbolic sizes and what is in a tuple, an
// array or a cell aren't compared.
bool fits(const SignatureType& type, const AnyView& value);

// Whether no code matches arguments of the type, or parts of it: the code matches tensors and
// shapes, also those in tuples. Of an array or a value of a data type, what is in it isn't checked.
bool is_unmatched(const SignatureType& type);

// What doesn't fit of a value: itself or a part of a tuple, and the result that it belongs to (-1:
// the whole). `type` is null if all fits.
struct TypeMisfit {
  const SignatureType* type = nullptr;
  const AnyView* value = nullptr;
  int64_t part = -1;
};
// With `unmatched`, only of what no code matches.
TypeMisfit find_misfit(const SignatureType& type, const AnyView& value, bool unmatched);

// Makes a value from outside one of the type, as far as it can be: a float is rounded, and a
// function of the host held to the type of its result (host_function.h), which `owner` keeps alive.
// A tuple, and an array with functions in it, are made anew.
void conform(const SignatureType& type, const Ref<const Object>& owner, Any* value);

// What an error shows as found: the value's type or, where the type is expected and only the range
// is wrong, the number itself.
std::string found_text(const AnyView& value);
std::string found_text(const SignatureType& type, const AnyView& value);

// Throws an error `what` that shows the value as found and the type as expected.
[[noreturn]] void throw_misfit(ErrorKind kind, std::string_view what, const SignatureType& type,
                               const AnyView& value);

// "result 1 of function 'f' doesn't fit its declared type": `what` are the last words, and `part`
// the result's number, -1 for a function's only one. Without a name it is a function of the host.
std::string returned_text(std::string_view function, int64_t part, std::string_view what);
inline constexpr char kMisfitsDeclaration[] = "doesn't fit its declared type";
// Throws Runtime with this text if the value doesn't fit the type, or a part of a tuple its part's.
void require_returned(std::string_view function, const SignatureType& type, const AnyView& value,
                      std::string_view what);

}  // namespace tenon::vm

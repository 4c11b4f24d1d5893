// Functions of the host as values of a program's function types. Bytecode that calls a function
// value relies on the declared type of its result, which only a program's own functions keep to. So
// where values come in from the host, each other function is wrapped in one that checks what it
// returns, as the result of a packed function is checked.
#pragma once

#include <cstdint>
#include <memory>

#include "object/any.h"
#include "vm/isa/function_places.h"
#include "vm/isa/signature.h"

namespace tenon::vm {

// A function value of that type. Of the host, it becomes a function that throws Runtime where a
// result doesn't fit its type, of a size also where that differs from one in an argument's type.
// Floats are rounded. A program's functions, and what is no function, stay. `in_result` finds
// functions in results.
struct ResultFunctions {
  std::shared_ptr<const FunctionPlaces> places;
  uint32_t type = FunctionPlaces::kNone;
};
Any with_checks(const SignatureType& type, const Any& value, ResultFunctions in_result);

}  // namespace tenon::vm

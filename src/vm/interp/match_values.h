// Checks what a function is called with, and the value that it returns, against its signature. Its
// own code matches tensors and shapes.
#pragma once

#include "object/any.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

// A Runtime error that names the function if the value's kind, element type, rank or constant sizes
// differ from the signature's; the same for the parts of a tuple. Symbolic sizes and the contents
// of arrays and cells aren't checked.
void check_result(const FunctionUnit& function, const AnyView& value);

// A Usage error if the value isn't a tensor that may hold that result of the function: by element
// type, rank and constant sizes.
void check_output(const FunctionUnit& function, size_t result, const AnyView& value);

// A Usage error that names the parameter if an argument doesn't fit it, where no code matches it
// (is_unmatched), or an element of an argument that is an array of numbers or strings. `captures`
// values come before `args`.
void check_unmatched(const FunctionUnit& function, size_t captures, std::span<const AnyView> args,
                     const std::string& program);

}  // namespace tenon::vm

// Random programs of values: data types with type parameters, nested patterns, closures, lists,
// arrays, strings, scalars of every type, tensors with symbolic sizes, loops, polymorphic and
// recursive functions.
//
// A program is made as text, so that the parser's inference of types is tested, too. It ends: loops
// count, functions call only functions before them or recurse over a number or a value. It never
// fails, and computes nothing inexact.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::random_programs {

// The text of the program for `seed`, with entry @main, whose parameters are scalars and tensors.
std::string value_program(uint64_t seed);

}  // namespace tenon::random_programs

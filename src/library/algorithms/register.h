// The library "algorithms": functions of a program that aren't loop nests and that the runtime
// does without.
#pragma once

namespace tenon {

// Registers its functions.
void register_algorithm_functions();
// Defines the library "tenon_algorithms" in a process that links it. May be called repeatedly.
void register_algorithms();

}  // namespace tenon

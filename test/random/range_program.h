// Random programs whose constants, inputs and results span the range of f32: a rewrite that moves a
// factor must keep the digits and the range that the definition has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/module.h"

namespace tenon::random_programs {

// A graph of 2 to 7 operators that compilers combine: factors and terms, normalisations, products,
// convolutions, attention. All sizes are static.
struct RangeProgram {
  graph::Module module;
  std::vector<Any> inputs;
  // The difference from what operators give one by one that rounding explains, by result and
  // element. It comes from runs of the same program in which every result, and every term of a
  // sum, is changed by a few units in the last place.
  std::vector<std::vector<double>> allowed;
};

// The program for `seed`. No intermediate value, nor a sum of its terms' magnitudes, exceeds 1e37:
// infinities depend on the order of sums, and other tests cover them.
RangeProgram range_program(uint64_t seed);

// Where its results at -O1 to -O3, or after a pass, differ by more than `allowed`; else "".
std::string find_difference(const RangeProgram& program);

}  // namespace tenon::random_programs

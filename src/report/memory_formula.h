// How much memory a function's code takes, as a formula of the sizes in its signature.
//
// It counts the bytes of the storages that a call has at once, as the code asks for them: what
// PoolStats::call_bytes counts. It is found by following the code of a program, whichever way that
// was made, through its paths and calls; a storage counts from its allocation until no register can
// lead to it. So it is an upper bound, and exact for code without jumps. Neither counted nor
// limited by it: the arguments, objects other than tensor data, and what packed functions and
// kernels use while they run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "loop/dim.h"
#include "vm/isa/unit.h"

namespace tenon::report {

struct MemoryFormula {
  Dim bytes;
  // The symbols of the signature's types, in order.
  std::vector<std::string> sizes;
  // Other symbols, for what only a run knows; each stands for the largest value of several.
  struct Unknown {
    std::string symbol, meaning;
  };
  std::vector<Unknown> unknowns;
};

// Of each function of the unit, in order. The code must be verified. Code that takes too long to
// follow has an unknown as its formula.
std::vector<MemoryFormula> memory_formulas(const vm::Unit& unit);

}  // namespace tenon::report

// Compares the passes, code and memory of a program with an evaluator that shares neither schedules
// nor the back end with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/module.h"

namespace tenon::random_programs {

struct Checks {
  bool passes = true;   // the module after each pass, walked
  bool machine = true;  // compiled, on the machine, poisoned and not
  std::vector<int> levels = {0, 1, 2, 3};
  bool libraries = true;  // also with library calls
  bool may_fail = true;   // that the reference fails is no finding
  bool direct_convolutions = false;
  // The greatest difference of each element of each result, which are tensors; if empty,
  // kTolerance applies.
  std::vector<std::vector<double>> allowed = {};
};

// Of graph programs, and of value programs, which have few operators that libraries know.
inline const Checks kGraphChecks;
inline const Checks kValueChecks = {.levels = {0, 2}, .libraries = false, .may_fail = false};

// Runs @main on `inputs` in every way that `checks` selects. Returns where results differ or the
// compiler fails, or "" if all agree. Also returns "" if the program may fail and does in the
// reference (for example, an index is out of range).
std::string find_difference(const graph::Module& module, const std::vector<Any>& inputs,
                            const Checks& checks);
// The same on the inputs of `seed`. Every third seed's have NaN among them, which -O3 may lose
// after products: it isn't checked then.
std::string find_difference(const graph::Module& module, uint64_t seed, Checks checks);
// The same of a program's text, or why it is no program.
std::string find_difference(const std::string& text, uint64_t seed, const Checks& checks);

}  // namespace tenon::random_programs

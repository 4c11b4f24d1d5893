// Compares the passes, code and memory of a program with an evaluator that shares neither schedules
// nor the back end with them.
#pragma once

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

// Runs @main on `inputs` in every way that `checks` selects. Returns where results differ or the
// compiler fails, or "" if all agree. Also returns "" if the program may fail and does in the
// reference (for example, an index is out of range).
std::string find_difference(const graph::Module& module, const std::vector<Any>& inputs,
                            const Checks& checks);

}  // namespace tenon::random_programs

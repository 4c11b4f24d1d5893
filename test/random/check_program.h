// What a compiler may not change: the passes, code and memory of a program against an evaluator
// that shares no schedule and no back end with them.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/module.h"

namespace tenon::random_programs {

struct Checks {
  bool passes = true;   // the module after each pass, walked
  bool machine = true;  // compiled, on the machine, poisoned and not
  std::vector<int> levels = {0, 1, 2, 3};
};

// Runs @main on `inputs` in every way that `checks` asks for, and says where two of them differ, or
// where the compiler fails; "" when all agree. Programs that fail in the reference (an index out of
// range, say) have nothing to compare: "" too.
std::string find_difference(const graph::Module& module, const std::vector<Any>& inputs,
                            const Checks& checks);

}  // namespace tenon::random_programs

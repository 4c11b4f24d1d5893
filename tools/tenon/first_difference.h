// Finds the first value that the compiled program computes differently from what is expected.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "graph/ir/module.h"
#include "tools/tenon/compare.h"

namespace tenon::tool {

// A value in the outermost block of a function.
struct ExpectedValue {
  graph::Operand value;
  Any expected;
};

// A function whose values are computed for some inputs.
struct CalledFunction {
  const graph::Module& module;
  const std::string& name;
  const driver::CompileOptions& options;
  const std::vector<Any>& inputs;
};

struct FirstDifference {
  size_t index = 0;  // among the expected values
  Difference difference;
  bool fused = false;  // as a result besides all others, the value is as expected
};

// The values as results of the function, compiled.
std::vector<Any> compute(const CalledFunction& function, const std::vector<graph::Operand>& values);

// The first of `expected`, in program order, that the compiled program does not reproduce within
// the criterion. First, all values become results at once, which leaves them unfused. If none
// differs, `first_fused_difference` looks further.
std::optional<FirstDifference> first_difference(const CalledFunction& function,
                                                const std::vector<ExpectedValue>& expected,
                                                const Criterion& criterion);

// Cuts the program off after single values, chosen by bisection. This finds differences caused by
// fusion, unless a later operator hides the difference at a cut. `compare` returns how a value that
// was found differs from what is expected at that index.
std::optional<FirstDifference> first_fused_difference(
    const CalledFunction& function, const std::vector<graph::Operand>& values,
    const std::function<Difference(size_t index, const Any& found)>& compare);

}  // namespace tenon::tool

// Finds the first operator whose compiled result differs from the interpreted one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "graph/ir/module.h"
#include "tools/tenon/compare.h"

namespace tenon::tool {

// A tensor that a binding of the function's outermost block has when interpreted.
struct InterpretedValue {
  Ref<const graph::Binding> binding;
  Any value;
};

struct FirstDifference {
  Span span;  // of the operator
  Difference difference;
};

// The first of `expected`, in program order, that the compiled program does not reproduce within
// the tolerance. First, all values become results at once, which leaves them unfused. If none
// differs, the program is cut off after single values, chosen by bisection. This finds differences
// caused by fusion, unless a later operator hides the difference at a cut.
std::optional<FirstDifference> first_difference(const graph::Module& module,
                                                const std::string& function,
                                                const driver::CompileOptions& options,
                                                const std::vector<Any>& inputs,
                                                const std::vector<InterpretedValue>& expected,
                                                const Tolerance& tolerance);

}  // namespace tenon::tool

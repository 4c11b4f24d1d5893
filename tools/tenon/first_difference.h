// Where a compiled program first computes something else than the interpreted one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "graph/ir/module.h"
#include "tools/tenon/compare.h"

namespace tenon::tool {

// A tensor that interpreting the function's own block gave.
struct InterpretedValue {
  Ref<const graph::Binding> binding;
  Any value;
};

struct FirstDifference {
  Span span;  // of the operator
  Difference difference;
};

// The first of `expected`, in the order of the program, which the compiled program does not give
// within the tolerance. All are asked for at once, which leaves them unfused; where that gives no
// difference, the program is cut behind one after the other, found by halving: a difference that
// comes of fusion is named at the first cut that shows it, unless a later operator hides it from
// the cuts between.
std::optional<FirstDifference> first_difference(const graph::Module& module,
                                                const std::string& function,
                                                const driver::CompileOptions& options,
                                                const std::vector<Any>& inputs,
                                                const std::vector<InterpretedValue>& expected,
                                                const Tolerance& tolerance);

}  // namespace tenon::tool

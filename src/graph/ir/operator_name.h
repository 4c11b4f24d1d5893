// The names of operators that the compiler's own rewrites match and make, as constants: op::conv. A
// misspelt name doesn't compile, and a name that no operator has fails a test.
#pragma once

#include <string_view>

namespace tenon::graph {

struct OperatorName {
  std::string_view text;

  constexpr operator std::string_view() const { return text; }
};

namespace op {
#define TENON_OPERATOR_NAME(name) inline constexpr OperatorName name{#name};
#include "graph/ir/operator_names.def"
}  // namespace op

// The values of the attribute `layout`, which operators with LayoutRule::kImage have.
inline constexpr std::string_view kChannelsFirst = "NCHW", kChannelsLast = "NHWC";

}  // namespace tenon::graph

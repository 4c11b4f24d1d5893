// Interfaces to layers that passes may not include; the driver provides the implementations.
#pragma once

#include <vector>

#include "graph/ir/module.h"
#include "loop/tiling.h"

namespace tenon::graph {

// Evaluates functions on constants, by the operators' lowerings or the module's kernels.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Runs `function`, whose calls name kernels and functions of `module`, on `args`. Returns the
  // fields of a tuple, or the single result. Throws what the function raises.
  virtual std::vector<Any> run(const Module& module, const FunctionRef& function,
                               const std::vector<Any>& args) = 0;
};

struct OfferOptions {
  int level = 0;             // the compiler's option (driver/options.def)
  loop::TargetFacts target;  // the lowest CPU that code is made for
};

// The calls that an external library can take.
class Offer {
 public:
  virtual ~Offer() = default;
  // Rewrites calls that the library takes into packed calls to it. Below -O3, these follow
  // docs/semantics.md, including NaN.
  virtual Module partition(const Module& module, const OfferOptions& options) = 0;
};

}  // namespace tenon::graph

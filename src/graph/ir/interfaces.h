// What passes need of rooms that they may not include: the driver hands these in.
#pragma once

#include <vector>

#include "graph/ir/module.h"

namespace tenon::graph {

// Computes functions on constants, by the operators' own lowerings or by the module's kernels.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Runs `function`, whose calls name kernels and functions of `module`, on `args`; the results are
  // the fields of a tuple, else one. Throws Error when it fails.
  virtual std::vector<Any> run(const Module& module, const FunctionRef& function,
                               const std::vector<Any>& args) = 0;
};

// What an external library can take.
class Offer {
 public:
  virtual ~Offer() = default;
  virtual const char* library() const = 0;
  // A rewrite of `module` in which the calls that the library takes are packed calls to it. Below
  // -O3 they keep to docs/semantics.md, NaN included.
  virtual Module partition(const Module& module, int level) = 0;
};

}  // namespace tenon::graph

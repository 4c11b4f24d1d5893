// Lowering of primitive functions: calls of operators, of which each has a Compute, to one Compute.
#pragma once

#include <optional>
#include <string>

#include "graph/ir/module.h"
#include "loop/compute.h"

namespace tenon::graph {

// The kernel of `primitive`: its inputs are the parameters in order, its outputs the result or the
// fields of a tuple. Symbols keep their names; constants of one element become literals. The joined
// Compute is simplified (loop::inline_stages). `primitive` has no obstacle.
loop::ComputeRef lower_primitive(const FunctionRef& primitive);

// Why a function can't be one kernel. What fusion makes has none; a program may ask for any.
struct Obstacle {
  Span span;
  std::string found;
};
std::optional<Obstacle> find_obstacle(const FunctionExpr& function);

}  // namespace tenon::graph

// Lowers primitive functions, whose operators each have a Compute, to one joined Compute.
#pragma once

#include <optional>
#include <string>

#include "graph/ir/module.h"
#include "loop/compute.h"

namespace tenon::graph {

// The kernel of `primitive`: its inputs are the parameters in order, its outputs the result or the
// fields of a tuple. Symbols keep their names; constants that may be literals become such. The
// joined Compute is simplified (loop::inline_stages). find_obstacle() must have found nothing.
loop::ComputeRef lower_primitive(const FunctionRef& primitive);

// Whether a constant of this type becomes a literal: one element, but no complex number.
bool may_be_literal(const TypeRef& type);

// Why a function can't be one kernel. Functions that fusion makes have no obstacle; functions that
// a program marks as primitive may.
struct Obstacle {
  Span span;
  std::string found;
};
std::optional<Obstacle> find_obstacle(const FunctionExpr& function);

}  // namespace tenon::graph

// How expressions depend on loop variables: what schedules decide by.
#pragma once

#include <optional>
#include <vector>

#include "loop/kernel.h"

namespace tenon::loop {

// The c of e = c * v + (something free of v), where there is one; Dim(0) if `e` is free of v. With
// `loads_are_free` what is loaded counts as free of v wherever it is loaded from.
std::optional<Dim> coefficient(const ExprRef& e, const Ref<const Var>& v,
                               bool loads_are_free = false);

// A variable that runs over [0, extent).
struct VarRange {
  Ref<const Var> var;
  Dim extent;
};

// Takes floordiv and mod by sizes apart where the ranges of the variables allow it: what a reshape
// between transpositions leaves, such as floordiv(i * 12 + j, 12) with j < 12, which is i.
ExprRef simplify_indices(const ExprRef& e, const std::vector<VarRange>& ranges);

// Row-major strides, in elements.
std::vector<Dim> strides_of(const Array<Dim>& shape);

// The row-major offset of `indices` in a buffer of `shape`, as base + c1*v1 + c2*v2 + ... in the
// order of `vars`, with what isn't affine in the base.
ExprRef flat_offset(const Array<Dim>& shape, const Array<ExprRef>& indices,
                    const std::vector<Ref<const Var>>& vars);

// Gives every load of a buffer with dimensions a single index of that form.
ExprRef flatten_loads(const ExprRef& e, const std::vector<Ref<const Var>>& vars);

// Every load in the expression, each once.
std::vector<const Load*> loads_in(const ExprRef& e);

}  // namespace tenon::loop

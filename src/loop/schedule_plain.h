// Plain loops for one stage: level 0, and what a stage without a better schedule falls back to.
#pragma once

#include "loop/kernel.h"

namespace tenon::loop {

// Loops over all axes of the stage in order, which write its buffer.
StmtRef plain_stage(const Stage& stage);

// The updates of a scatter, without its first values.
StmtRef plain_updates(const Stage& scatter);

// Serial loops around `body`, the first variable outermost.
StmtRef nest(const Array<Ref<const Var>>& vars, const Array<Dim>& extents, StmtRef body);

// The statements that reduce the stage's body at one point of its axes, with `reduce` around the
// steps and `finish` given the result.
StmtRef plain_reduction(const Stage& stage,
                        const std::function<StmtRef(const ExprRef& result)>& finish);

}  // namespace tenon::loop

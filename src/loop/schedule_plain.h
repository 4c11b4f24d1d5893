// Plain loops for one stage: level 0, and the fallback for stages without a better schedule.
#pragma once

#include "loop/compute.h"
#include "loop/kernel.h"

namespace tenon::loop {

// Loops over all axes of the stage in order, which write its buffer. With `clear_scans`, a scan's
// buffer is zeroed first, so that a scan that may read elements before writing them never sees old
// memory contents.
StmtRef plain_stage(const Stage& stage, bool clear_scans);

// The updates of a scatter, without the initial values.
StmtRef plain_updates(const Stage& scatter);

// Whether an arg reduction's `value`, of a later place, replaces `best`. NaN counts as the extreme;
// among equals, the first or last wins.
ExprRef replaces(Reduction reduction, const ExprRef& value, const ExprRef& best);

// Serial loops around `body`, the first variable outermost.
StmtRef serial_loops(const Array<Ref<const Var>>& vars, const Array<Dim>& extents, StmtRef body);

// The statements that reduce the stage's body at one point of its axes; `finish` makes a statement
// from the result.
StmtRef plain_reduction(const Stage& stage,
                        const std::function<StmtRef(const ExprRef& result)>& finish);

}  // namespace tenon::loop

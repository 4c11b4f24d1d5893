// A serial loop around the nest of a step.
#pragma once

#include "loop/recurrence.h"
#include "loop/schedule.h"

namespace tenon::loop {

// `step`: the nest of r.step. The outputs of `r` hold the states between iterations.
StmtRef repeat_step(const Recurrence& r, const StmtRef& step, const ScheduleOptions& options);

}  // namespace tenon::loop

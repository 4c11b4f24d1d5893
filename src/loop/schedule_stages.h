// Level 1: groups a compute's stages and gives each group a nest.
#pragma once

#include "loop/schedule.h"

namespace tenon::loop {

StmtRef schedule_stages(const Compute& compute, const ScheduleOptions& options);

}  // namespace tenon::loop

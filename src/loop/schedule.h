// Schedules: turn a Compute (what is computed) into a Kernel (in which order).
#pragma once

#include <cstdint>
#include <string_view>

#include "loop/kernel.h"
#include "loop/recurrence.h"
#include "loop/tiling.h"

namespace tenon::loop {

enum class ScheduleLevel : uint8_t {
  kPlain,   // loops in the order of the stages, each stage in its own scratch: the oracle
  kShaped,  // schedules that suit the Compute's shape
};

struct ScheduleOptions {
  ScheduleLevel level = ScheduleLevel::kShaped;
  TargetFacts target;
  ChooseTiling tiling = tabled_tiling;
  ChooseWinogradTile winograd_tile = measured_winograd_tile;
};

// The only way from a Compute to a loop nest. `compute` must be a whole kernel (whole_kernel), and
// the result has its interface. Accesses are trusted if the compute's are (`in_bounds`).
KernelRef lower(const Compute& compute, std::string_view name, const ScheduleOptions& options);
// The same for a whole loop around its step's nest.
KernelRef lower(const Recurrence& recurrence, std::string_view name,
                const ScheduleOptions& options);

// The loop nest of any kind of kernel, under `name`: a loop nest is kept, others are lowered.
KernelRef loop_nest(const KernelInterfaceRef& kernel, std::string_view name,
                    const ScheduleOptions& options);

}  // namespace tenon::loop

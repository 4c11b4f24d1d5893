// Which of a file's native codes a machine runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vm/isa/unit.h"

namespace tenon::vm {

// The unit's first target whose code this machine can run, or could run if it had only the CPU
// features `available`. If there is none, null, with the reason for each target in `reasons`.
const KernelTarget* choose_kernels(const Unit& unit,
                                   const std::optional<std::vector<std::string>>& available = {},
                                   std::vector<std::string>* reasons = nullptr);

}  // namespace tenon::vm

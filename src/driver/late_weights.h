// Weights apart from the executable: compiled programs whose large constants are bound when they
// are loaded, from a weight file that several programs can share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "object/tensor.h"
#include "vm/isa/unit.h"

namespace tenon::driver {

// Makes every tensor constant of at least 1 KiB a late one, and returns their tensors by name. A
// constant keeps its name where no other has it; else a number makes the name unique. The names
// depend on the unit alone.
std::vector<std::pair<std::string, Tensor>> leave_out_weights(vm::Unit& unit);

}  // namespace tenon::driver

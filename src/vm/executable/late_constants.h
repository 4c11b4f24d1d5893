// Constants that a file leaves out: tensors provided by name when the file is loaded.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "object/tensor.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

// The tensor of that name, on the CPU; null if there is none.
using WeightSource = std::function<Tensor(std::string_view name)>;

// Binds every late constant of the unit to its tensor, whose elements must never change afterwards.
// The tensor is shared, read-only, or copied if its data isn't compact or is less aligned than the
// constant requires; constants of one name share one copy. Copying polls, and counts for the
// thread's ObjectBudget. Usage errors name the constants that `source` (which may be empty) doesn't
// have, or one whose tensor has the wrong type. `name` is the file's, for errors.
void bind_late_constants(Unit& unit, const WeightSource& source, const std::string& name);

}  // namespace tenon::vm

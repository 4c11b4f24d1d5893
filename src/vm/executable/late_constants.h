// Constants that a file leaves out: tensors that whoever loads it gives, by name.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "object/tensor.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

// The tensor of that name, on the CPU; a null one when there is none.
using WeightSource = std::function<Tensor(std::string_view name)>;

// Gives every late constant of the unit its tensor, whose elements may never change again. It is
// shared, read-only, unless its data is less aligned than the constant needs or not compact: then
// it is copied. Usage errors name the constants that `source` (which may be empty) doesn't have,
// and one whose tensor has another type. `name` is the file's, for errors.
void bind_late_constants(Unit& unit, const WeightSource& source, const std::string& name);

}  // namespace tenon::vm

// Setting a field in two steps, for readers that set the same array or map in many objects:
// checking it takes time in proportion to its size, setting it does not.
#pragma once

#include "object/reflect.h"

namespace tenon {

// Throws set_field's Usage error if the field can't hold an object, array, map or shape. Values of
// other kinds are checked when they are set.
void check_field(const Field& field, const AnyView& value);
// set_field for a value that check_field accepts.
void set_checked_field(Object& object, const Field& field, const AnyView& value);

}  // namespace tenon

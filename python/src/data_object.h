// Instances of the classes that python/tenon/_data.py makes for the constructors of data types.
#pragma once

#include "python/src/data.h"

namespace tenon::python {

inline constexpr const char* kDataModule = "tenon._data";

// A cell that a program returned and that Python has not looked into.
struct UnopenedCell {
  Value value;
  const DataPlan* plan;
  std::shared_ptr<DataTypes> types;
};

// The cell that an instance holds in `_held`.
const UnopenedCell& unopened(nb::handle held);
// What an instance holds: an UnopenedCell, or None.
nb::object held_by(nb::handle instance);
nb::object new_instance(nb::handle type, nb::handle fields, nb::handle held);
// The value of a constructor without fields.
nb::object sole_value(nb::handle type);
// Whether the object is a constructor's class.
bool is_class(nb::handle object);
// The fields of an instance, as a tuple.
nb::object opened(nb::handle instance);

}  // namespace tenon::python

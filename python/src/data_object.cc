#include "python/src/data_object.h"

#include <atomic>
#include <vector>

#include "python/src/classes.h"
#include "python/src/error.h"

namespace tenon::python {
namespace {

PyTypeObject* base_class() {
  static constinit std::atomic<PyObject*> known = nullptr;
  return reinterpret_cast<PyTypeObject*>(attribute_of(kDataModule, "DataValue", known));
}

PyObject* interned(const char* name, std::atomic<PyObject*>& known) {
  return kept(known, [&] { return PyUnicode_InternFromString(name); });
}
PyObject* fields_name() {
  static constinit std::atomic<PyObject*> known = nullptr;
  return interned("_fields", known);
}
PyObject* held_name() {
  static constinit std::atomic<PyObject*> known = nullptr;
  return interned("_held", known);
}

void set(nb::handle instance, PyObject* name, nb::handle value) {
  if (PyObject_GenericSetAttr(instance.ptr(), name, value.ptr()) != 0) throw nb::python_error();
}
nb::object get(nb::handle instance, PyObject* name) {
  nb::object out = nb::steal(PyObject_GenericGetAttr(instance.ptr(), name));
  if (!out.is_valid()) throw nb::python_error();
  return out;
}

}  // namespace

const UnopenedCell& unopened(nb::handle held) {
  if (!nb::isinstance<UnopenedCell>(held)) throw nb::type_error("_held isn't a cell of a program");
  return *nb::inst_ptr<UnopenedCell>(held);
}

nb::object held_by(nb::handle instance) {
  return get(instance, held_name());
}

nb::object new_instance(nb::handle type, nb::handle fields, nb::handle held) {
  auto* const t = reinterpret_cast<PyTypeObject*>(type.ptr());
  nb::object made = nb::steal(t->tp_alloc(t, 0));
  if (!made.is_valid()) throw nb::python_error();
  set(made, fields_name(), fields);
  set(made, held_name(), held);
  return made;
}

nb::object sole_value(nb::handle type) {
  return nb::borrow(type.attr("_value"));
}

bool is_class(nb::handle object) {
  return PyType_Check(object.ptr()) &&
         PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object.ptr()), base_class()) != 0;
}

nb::object opened(nb::handle instance) {
  for (;;) {
    nb::object fields = get(instance, fields_name());
    if (PyTuple_Check(fields.ptr())) return fields;
    if (!fields.is_none()) throw nb::type_error("_fields isn't a tuple");
    const nb::object held = get(instance, held_name());
    if (held.is_none()) continue;  // another thread has opened it
    const UnopenedCell& cell = unopened(held);
    int64_t tag = -1;
    size_t size = 0;
    const tenon_any* values = tenon_cell_view(cell.value.get(), &tag, &size);
    const std::vector<const DataPlan*>& plans = *cell.types->fields(*cell.plan, tag);
    fields = new_tuple(size);
    for (size_t i = 0; i < size; ++i) {
      nb::object field = data_object(Value::copy_of(values[i]), *plans[i]);
      PyTuple_SET_ITEM(fields.ptr(), static_cast<Py_ssize_t>(i), field.release().ptr());
    }
    set(instance, fields_name(), fields);
    // What Python has seen may change, such as a list.
    set(instance, held_name(), nb::none());
    return fields;
  }
}

bool is_data_value(nb::handle object) {
  if (PyObject_TypeCheck(object.ptr(), base_class())) return true;
  return is_class(object) && nb::hasattr(object, "_value");
}

}  // namespace tenon::python

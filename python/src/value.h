// Values of the C interface with an owner, and their conversion from and to Python objects.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "python/src/nanobind.h"
#include "tenon/c_api.h"

namespace tenon::python {

// A value that is released when its owner ends. Needs no GIL.
class Value {
 public:
  Value() = default;
  Value(Value&& other) noexcept : any_(std::exchange(other.any_, kNone)) {}
  Value& operator=(Value&& other) noexcept {
    std::swap(any_, other.any_);
    return *this;
  }
  ~Value() {
    if (any_.type_index >= TENON_OBJECT_BEGIN) tenon_any_release(&any_);
  }

  static Value of(int64_t number);
  static Value copy_of(const tenon_any& any);

  const tenon_any& any() const { return any_; }
  const tenon_any* get() const { return &any_; }
  // For a function of the C interface that stores its result here.
  tenon_any* out() { return &any_; }
  int32_t type_index() const { return any_.type_index; }

 private:
  static constexpr tenon_any kNone = TENON_NONE_VALUE;
  tenon_any any_ = kNone;
};
static_assert(sizeof(Value) == sizeof(tenon_any));  // arrays of values are arguments

struct DataPlan;

// What a parameter takes, which decides how an ambiguous object is converted.
struct Expected {
  int32_t kind = TENON_NONE;  // as in tenon_value_info; TENON_NONE for anything
  DLDataType dtype = {};      // of a tensor or a scalar
  // A program may not write to its arguments; passing them as read-only saves it wrapping them.
  bool is_of_program = false;
  // Of a type that contains data types, lists, options, tuples, arrays or functions (data.h).
  const DataPlan* plan = nullptr;
};

// Containers and instances nest as deep as Python's own recursion may.
class Nesting {
 public:
  Nesting() {
    if (Py_EnterRecursiveCall(" while converting a value") != 0) throw nb::python_error();
  }
  ~Nesting() { Py_LeaveRecursiveCall(); }
  Nesting(const Nesting&) = delete;
};

// The value of a Python object:
//
//   None, bool, int, float, str, bytes       the same
//   tenon.Tensor, NumPy array, anything with  a tensor that shares the object's memory and keeps
//   __dlpack__ or the buffer protocol          the object alive
//   NumPy scalar                             a number
//   tuple, list                              an array; a shape where one is expected
//   dict                                     a map
//   tenon.Function and other objects         the same
//   an instance of a registered type         an object of that type, which holds the instance
//   an instance of a constructor's class     a cell (data.h)
//   another callable                         a function that calls it
//
// Where a tensor is expected, numbers and lists of numbers become one with its dtype, if it has
// their kind (tenon._values._array_of). Throws TypeError for anything else, OverflowError for an
// integer of more than 64 bits, and RecursionError for containers that nest too deep.
Value to_value(nb::handle object, const Expected& expected = {});
// The same where the value is to stand.
void to_value(nb::handle object, const Expected& expected, Value* out);

// What the containers of one value became. A container that stands in several places is converted
// once, and is one object in Python, too: a program can make values of more paths than there is
// memory for.
class ConvertedParts {
 public:
  // What `make` makes of the container the first time. Small ones that hold no others need not be
  // kept. Polls for signals.
  template <class Make>
  nb::object of(const Value& container, const DataPlan* plan, const Make& make) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const auto [at, is_new] = made_.try_emplace({container.any().v.object, plan});
    if (is_new) at->second = make();  // may add others, but none that is this one
    return at->second;
  }

 private:
  std::map<std::pair<const void*, const DataPlan*>, nb::object> made_;
};

// A tuple, to be filled.
nb::object new_tuple(size_t size);

// The Python object of a value: the inverse of `to_value`; arrays become tuples, maps dicts, dtypes
// and devices strings, and objects of other types instances of the Python class of their type.
nb::object to_python(Value value);
nb::object to_python(Value value, ConvertedParts* parts);  // of the value that it is a part of
// Whether a value of the type has another Python object than to_python says: a u64 has no sign.
bool needs_type(const Expected& expected);
// The Python object of a value of the type.
nb::object to_python(Value value, const Expected& expected);
nb::object to_python(Value value, const Expected& expected, ConvertedParts* parts);

// A str that names a function, type or field, for the C interface. One with a NUL, which would be
// cut there, is a ValueError.
std::string name_of(const nb::str& name);

// What `make` makes the first time, kept for good in `known`, a static. That has no initialiser
// which makes it: another thread could wait for it with the GIL, which an import may release.
template <class Make>
PyObject* kept(std::atomic<PyObject*>& known, const Make& make) {
  PyObject* object = known.load(std::memory_order_acquire);
  if (!object) {
    object = make();
    known.store(object, std::memory_order_release);
  }
  return object;
}
// An attribute of one of the package's modules.
PyObject* attribute_of(const char* module, const char* name, std::atomic<PyObject*>& known);

// The text of a str. Unlike nb::cast<std::string>, it throws std::bad_alloc where there is no
// memory, instead of ending the process; functions that Python calls take no std::string or
// std::vector for the same reason.
std::string string_of(nb::handle str);
// The texts of a sequence of str.
std::vector<std::string> strings_of(nb::handle sequence);
// A str; what isn't UTF-8, as in a damaged file, is escaped.
nb::object str_of(std::string_view text);
// The value as text for people, a str.
nb::object repr_of(const Value& value);

}  // namespace tenon::python

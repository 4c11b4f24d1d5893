// The binding's classes. Each `define` function adds one to the module.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "python/src/machines.h"
#include "python/src/value.h"

namespace tenon::python {

class DataTypes;

// Each holds one value of the C interface.
struct Tensor {
  Value value;
  const DLTensor& view() const { return *tenon_tensor_view(value.get()); }
  bool is_read_only() const { return tenon_tensor_flags(value.get()) & TENON_TENSOR_READ_ONLY; }
  bool is_constant() const { return tenon_tensor_flags(value.get()) & TENON_TENSOR_CONSTANT; }

  // The tensor of an instance; an error for one that Tensor.__new__ made without __init__.
  static const Tensor& of(nb::handle instance) {
    if (!nb::inst_ready(instance)) throw nb::type_error("this tensor was made without __init__");
    return *nb::inst_ptr<Tensor>(instance);
  }
};
// Any other object, by its fields.
struct Object {
  Value value;
};

// A parameter or result of a program's function.
struct Parameter {
  nb::object name;  // an interned str, empty for an unnamed result
  std::string type;
  Expected expected;
};
struct Signature {
  std::vector<Parameter> params, results;
  std::shared_ptr<DataTypes> types;  // owns the plans
};

// How Python calls a Function.
PyObject* call_function(PyObject* self, PyObject* const* args, size_t flags_and_n,
                        PyObject* names) noexcept;

// A function: of a program, registered, or a closure that a program returned. Any number of threads
// may call it.
struct Function {
  // First, so that Python finds it at a fixed distance (PyVectorcall).
  vectorcallfunc vectorcall = &call_function;
  Value value = {};
  // Of a program's function: its parameters by position and name; several results are a tuple
  // either way.
  std::shared_ptr<const Signature> signature = {};
  // Of a tenon.VirtualMachine: where calls run, and the function's name there.
  std::shared_ptr<Machines> machines = {};
  std::string name = {};
  // The first arguments there, if these are bound; `value` and `signature` are without them.
  std::shared_ptr<const std::vector<Value>> bound = {};
};

// A new instance of T's class. Unlike nb::cast, it throws std::bad_alloc where the tables of
// nanobind can't grow, instead of ending the process.
template <class T>
nb::object new_instance_of(T value) {
  nb::object made = nb::inst_alloc(nb::type<T>());
  if (!made.is_valid()) throw nb::python_error();
  new (nb::inst_ptr<T>(made)) T(std::move(value));
  nb::inst_mark_ready(made);
  return made;
}

// The Python class, for checks by exact type.
PyTypeObject* tensor_class();

nb::object new_tensor(Value value);
nb::object new_function(Value value);
// A function of a program, whose calls run on the given machines if these aren't null.
nb::object function_of(const Program& program, const nb::str& name, const tenon_limits& limits,
                       std::shared_ptr<Machines> machines = {});
// Those of all functions that the host may call, by name.
std::map<std::string, Signature, std::less<>> signatures_of(const Program& program);
// Of a dictionary with every field of tenon_limits but its size; a KeyError if one is missing.
tenon_limits limits_of(const nb::dict& given);
nb::object new_object(Value value);

// The name of a dtype ("float32", "bfloat16", "bool": NumPy's and ml_dtypes') as a
// tenon._values.DType, which NumPy's own dtypes equal.
nb::object dtype_object(DLDataType dtype);

// Whether it is an instance of NumPy's class of that name. `known`, null at first, keeps the class.
bool is_numpy(PyObject* object, const char* name, std::atomic<PyTypeObject*>& known);

// How a tensor uses an object's memory. What the runtime can't describe, such as PyTorch's lazy
// negation, is copied unless it is an output.
enum class Borrow { kReadOnly, kShared, kOutput };

// Stores a tensor that shares the memory of an object with __dlpack__ or the buffer protocol, or of
// a NumPy array; false if it is none of these.
bool borrow_tensor(nb::handle object, Borrow how, Value* out);

// An instance of a class that was registered as a type, as an object; false if it is none.
bool host_object_of(nb::handle object, Value* out);
// The instance that an object of such a type holds, or a new one with its fields; an invalid object
// for other types.
nb::object host_instance(const Value& value);

// A function value that calls the Python object, whose arguments and result have the types of
// `plan`, a function's, if it isn't null.
Value callback(nb::handle callable, const DataPlan* plan = nullptr);

void define_tensor(nb::module_& m);
void define_function(nb::module_& m);
void define_object(nb::module_& m);
void define_program(nb::module_& m);
void define_data(nb::module_& m);
void define_machines(nb::module_& m);
void define_host_types(nb::module_& m);

}  // namespace tenon::python

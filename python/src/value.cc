#include "python/src/value.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "python/src/classes.h"
#include "python/src/data.h"
#include "python/src/error.h"
#include "python/src/nanobind.h"
#include "python/src/tensor_data.h"

namespace tenon::python {
namespace {

tenon_any number_any(int32_t type_index, int64_t number) {
  tenon_any any = TENON_NONE_VALUE;
  any.type_index = type_index;
  any.v.i = number;
  return any;
}

bool is_u64(const Expected& expected) {
  return expected.kind == TENON_INT && expected.dtype.code == kDLUInt && expected.dtype.bits == 64;
}

// A u64 of 2^63 or more is the negative integer with its bits.
Value of_int(PyObject* object, const Expected& expected = {}) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  if (!is_u64(expected)) {
    if (!overflow) return Value::of(number);
    PyErr_SetString(PyExc_OverflowError,
                    "an integer doesn't fit 64 bits with a sign; only a u64 may be larger");
    throw nb::python_error();
  }
  if (!overflow && number >= 0) return Value::of(number);
  if (overflow > 0) {
    const unsigned long long bits = PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred()) return Value::of(static_cast<int64_t>(bits));
    PyErr_Clear();
  }
  PyErr_Format(PyExc_OverflowError, "an integer from 0 to 2**64 - 1 is expected, not %S", object);
  throw nb::python_error();
}

Value of_float(double number) {
  tenon_any any = TENON_NONE_VALUE;
  any.type_index = TENON_FLOAT;
  any.v.f = number;
  return Value::copy_of(any);
}

// Each dimension of a sequence of integers. A program's shape has no negative ones; in an option of
// the compiler's, they stand for what isn't known.
Value shape_of(nb::handle sequence, const Expected& expected) {
  std::vector<int64_t> dims;
  for (nb::handle item : nb::borrow<nb::sequence>(sequence)) {
    const nb::object index = nb::steal(PyNumber_Index(item.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    dims.push_back(of_int(index.ptr()).any().v.i);
    if (dims.back() < 0 && expected.is_of_program) {
      throw nb::value_error(
          ("a size in a shape is negative: " + std::to_string(dims.back())).c_str());
    }
  }
  Value out;
  check(tenon_shape_create(dims.data(), dims.size(), out.out()));
  return out;
}

std::vector<Value> values_of(nb::handle sequence) {
  const Nesting nesting;
  std::vector<Value> values;  // without `reserve`: a subclass may have a false __len__
  for (nb::handle item : nb::borrow<nb::sequence>(sequence)) values.push_back(to_value(item));
  return values;
}

const tenon_any* first(const std::vector<Value>& values) {
  return values.empty() ? nullptr : values[0].get();
}

Value map_of(nb::handle dict) {
  const Nesting nesting;
  // A copy, since converting an item may run code in Python, here or on another thread, that
  // changes the dict.
  const auto items = nb::steal<nb::dict>(PyDict_Copy(dict.ptr()));
  if (!items.is_valid()) throw nb::python_error();
  std::vector<Value> keys, values;
  for (auto [key, value] : items) {
    keys.push_back(to_value(key));
    values.push_back(to_value(value));
  }
  Value out;
  check(tenon_map_create(first(keys), first(values), keys.size(), out.out()));
  return out;
}

// Numbers as a tensor of the dtype, if that takes them.
Value array_of(nb::handle object, DLDataType dtype) {
  const nb::object array = nb::module_::import_("tenon._values")
                               .attr("_array_of")(object, nb::str(dtype_name(dtype).c_str()));
  Value out;
  borrow_tensor(array, Borrow::kShared, &out);
  return out;
}

bool is_numpy_scalar(PyObject* object) {
  static constinit std::atomic<PyTypeObject*> generic = nullptr;
  return is_numpy(object, "generic", generic);
}

PyObject* shape_class() {
  static constinit std::atomic<PyObject*> known = nullptr;
  return attribute_of("tenon._values", "Shape", known);
}

// Of an object that isn't a tensor.
Value value_of_other(nb::handle object, const Expected& expected) {
  PyObject* const o = object.ptr();
  const bool wants_tensor = expected.kind == TENON_TENSOR;
  Value out;
  if (host_object_of(object, &out)) return out;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    if (wants_tensor) return array_of(object, expected.dtype);
    if (expected.kind == TENON_SHAPE || reinterpret_cast<PyObject*>(Py_TYPE(o)) == shape_class())
      return shape_of(object, expected);
    const std::vector<Value> items = values_of(object);
    check(tenon_array_create(first(items), items.size(), out.out()));
    return out;
  }
  const bool wants_text = wants_tensor && is_strings(expected.dtype);
  if (wants_tensor && (PyFloat_Check(o) || PyLong_Check(o) || (wants_text && PyUnicode_Check(o))))
    return array_of(object, expected.dtype);
  if (object.is_none()) return out;
  if (PyBool_Check(o)) return Value::copy_of(number_any(TENON_BOOL, o == Py_True));
  if (PyLong_Check(o)) {
    Value number = of_int(o, expected);
    return expected.kind == TENON_FLOAT ? of_float(static_cast<double>(number.any().v.i))
                                        : std::move(number);
  }
  if (PyFloat_Check(o)) return of_float(PyFloat_AS_DOUBLE(o));
  if (PyUnicode_Check(o)) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(o, &size);
    if (!bytes) throw nb::python_error();
    check(tenon_string_create(bytes, static_cast<size_t>(size), out.out()));
    return out;
  }
  if (PyBytes_Check(o)) {
    check(tenon_bytes_create(PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o)),
                             out.out()));
    return out;
  }
  if (PyDict_Check(o)) {
    if (expected.kind == TENON_TENSOR) {
      throw nb::type_error(
          "a dict isn't a tensor; inputs by name are keyword arguments: f(**inputs)");
    }
    return map_of(object);
  }
  if (Function* f = nullptr; nb::try_cast(object, f) && f) return Value::copy_of(f->value.any());
  if (Object* v = nullptr; nb::try_cast(object, v) && v) return Value::copy_of(v->value.any());
  if (Program* p = nullptr; nb::try_cast(object, p) && p) return Value::copy_of(p->value.any());
  if (is_data_value(object)) return untyped_data_value(object);
  if (PyIndex_Check(o)) {
    const nb::object index = nb::steal(PyNumber_Index(o));
    if (!index.is_valid()) throw nb::python_error();
    return of_int(index.ptr(), expected);
  }
  if (PyCallable_Check(o)) return callback(object);
  throw nb::type_error((std::string("an object of type '") + Py_TYPE(o)->tp_name +
                        "' is not a value of Tenon: pass None, a number, str, bytes, an array or "
                        "tensor, a tuple, list or dict of these, a function, an object of Tenon's, "
                        "or an instance of a class that tenon.register_type registered")
                           .c_str());
}

std::string_view text(const Value& value) {
  const tenon_text t = tenon_string_view(value.get());
  return {t.data, t.size};
}

nb::object object_of(Value value, ConvertedParts* parts);

nb::object part_of(Value value, ConvertedParts* parts) {
  const int32_t type = value.type_index();
  if (type != TENON_ARRAY && type != TENON_MAP) return object_of(std::move(value), parts);
  return parts->of(value, nullptr, [&] { return object_of(Value::copy_of(value.any()), parts); });
}

nb::object tuple_of(const Value& array, ConvertedParts* parts) {
  const Nesting nesting;
  const auto size = static_cast<size_t>(tenon_array_size(array.get()));
  nb::object out = new_tuple(size);
  for (size_t i = 0; i < size; ++i) {
    Value item;
    check(tenon_array_get(array.get(), i, item.out()));
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i),
                     part_of(std::move(item), parts).release().ptr());
  }
  return out;
}

nb::object dict_of(const Value& map, ConvertedParts* parts) {
  const Nesting nesting;
  nb::dict out;
  const auto size = static_cast<size_t>(tenon_map_size(map.get()));
  for (size_t i = 0; i < size; ++i) {
    Value key, value;
    check(tenon_map_entry(map.get(), i, key.out(), value.out()));
    out[part_of(std::move(key), parts)] = part_of(std::move(value), parts);
  }
  return out;
}

nb::object shape_tuple(const Value& shape) {
  size_t rank = 0;
  const int64_t* dims = tenon_shape_view(shape.get(), &rank);
  nb::list list;
  for (size_t i = 0; i < rank; ++i) list.append(dims[i]);
  return nb::handle(shape_class())(list);
}

}  // namespace

nb::object new_tuple(size_t size) {
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(size)));
  if (!out.is_valid()) throw nb::python_error();
  return out;
}

Value Value::of(int64_t number) {
  return copy_of(number_any(TENON_INT, number));
}

Value Value::copy_of(const tenon_any& any) {
  Value out;
  if (any.type_index >= TENON_OBJECT_BEGIN) tenon_object_retain(any.v.object);
  out.any_ = any;
  return out;
}

nb::object str_of(std::string_view text) {
  nb::object out = nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  if (!out.is_valid()) throw nb::python_error();
  return out;
}

nb::object repr_of(const Value& value) {
  Value out;
  check(tenon_any_repr(value.get(), out.out()));
  return str_of(text(out));
}

Value to_value(nb::handle object, const Expected& expected) {
  Value out;
  to_value(object, expected, &out);
  return out;
}

void to_value(nb::handle object, const Expected& expected, Value* out) {
  PyObject* const o = object.ptr();
  if (expected.plan) {
    *out = data_value(object, *expected.plan);
  } else if (Py_TYPE(o) == tensor_class()) {
    *out = Value::copy_of(Tensor::of(object).value.any());
  } else if (!borrow_tensor(object, expected.is_of_program ? Borrow::kReadOnly : Borrow::kShared,
                            out)) {
    *out = value_of_other(object, expected);
  } else if (expected.kind != TENON_TENSOR && is_numpy_scalar(o)) {
    const Nesting nesting;  // a subclass may return another instance of its own
    *out = to_value(object.attr("item")(), expected);
  }
}

PyObject* attribute_of(const char* module, const char* name, std::atomic<PyObject*>& known) {
  return kept(known,
              [&] { return nb::object(nb::module_::import_(module).attr(name)).release().ptr(); });
}

std::string string_of(nb::handle str) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(str.ptr(), &size);
  if (!text) throw nb::python_error();
  return {text, static_cast<size_t>(size)};
}

std::vector<std::string> strings_of(nb::handle sequence) {
  std::vector<std::string> out;
  for (nb::handle item : nb::borrow<nb::sequence>(sequence)) out.push_back(string_of(item));
  return out;
}

std::string name_of(const nb::str& name) {
  std::string out = string_of(name);
  if (out.find('\0') == std::string::npos) return out;
  throw nb::value_error(("a name can't contain a NUL: " + string_of(nb::repr(name))).c_str());
}

bool needs_type(const Expected& expected) {
  return expected.plan || is_u64(expected);
}

nb::object to_python(Value value, const Expected& expected, ConvertedParts* parts) {
  if (expected.plan) return data_object(std::move(value), *expected.plan);
  if (is_u64(expected) && value.type_index() == TENON_INT) {
    return nb::int_(static_cast<uint64_t>(value.any().v.i));
  }
  return to_python(std::move(value), parts);
}
nb::object to_python(Value value, const Expected& expected) {
  ConvertedParts parts;
  return to_python(std::move(value), expected, &parts);
}

nb::object to_python(Value value, ConvertedParts* parts) {
  return part_of(std::move(value), parts);
}
nb::object to_python(Value value) {
  ConvertedParts parts;
  return object_of(std::move(value), &parts);
}

namespace {

nb::object object_of(Value value, ConvertedParts* parts) {
  const tenon_any& any = value.any();
  switch (any.type_index) {
    case TENON_NONE:
      return nb::none();
    case TENON_INT:
      return nb::int_(any.v.i);
    case TENON_BOOL:
      return nb::bool_(any.v.i != 0);
    case TENON_FLOAT:
      return nb::float_(any.v.f);
    case TENON_DTYPE:
      return nb::str(dtype_name(any.v.dtype).c_str());
    case TENON_SMALL_STRING:
    case TENON_STRING:
      return str_of(text(value));
    case TENON_SMALL_BYTES:
    case TENON_BYTES: {
      const std::string_view bytes = text(value);
      return nb::bytes(bytes.data(), bytes.size());
    }
    case TENON_SHAPE:
      return shape_tuple(value);
    case TENON_TENSOR:
      return new_tensor(std::move(value));
    case TENON_FUNCTION:
      return new_function(std::move(value));
    case TENON_ARRAY:
      return tuple_of(value, parts);
    case TENON_MAP:
      return dict_of(value, parts);
    default:
      if (nb::object instance = host_instance(value); instance.is_valid()) return instance;
      return any.type_index >= TENON_OBJECT_BEGIN ? new_object(std::move(value)) : repr_of(value);
  }
}

}  // namespace
}  // namespace tenon::python

// Tensors that share the memory of Python objects.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "python/src/classes.h"
#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/nanobind.h"
#include "python/src/tensor_data.h"

namespace tenon::python {
namespace {

// Python's references that the runtime ends, on any thread. After the interpreter's end, the
// objects stay.
void release_object(void* object) {
  if (const WithGil acquired{}) Py_DECREF(static_cast<PyObject*>(object));
}
void release_buffer(void* buffer) {
  const std::unique_ptr<Py_buffer> owned(static_cast<Py_buffer*>(buffer));
  if (const WithGil acquired{}) PyBuffer_Release(owned.get());
}

// Strides in elements, of NumPy's in bytes; false if these aren't multiples of an element's size.
class Strides {
 public:
  bool set(int rank, const Py_ssize_t* bytes, DLDataType type) {
    if (rank > kMost) return true;  // the runtime refuses the tensor
    const Py_ssize_t element = (type.bits + 7) / 8;
    for (int i = 0; i < rank; ++i) {
      if (bytes[i] % element != 0) return false;
      elements_[i] = bytes[i] / element;
    }
    return true;
  }
  int64_t* data() { return elements_; }

 private:
  static constexpr int kMost = 64;  // of NumPy and of the buffer protocol
  int64_t elements_[kMost];
};

DLTensor view_of(void* data, int rank, const Py_ssize_t* dims, int64_t* strides, DLDataType type) {
  return {data, {kDLCPU, 0}, rank, type, const_cast<Py_ssize_t*>(dims), strides, 0};
}

[[noreturn]] void fail_dtype(const std::string& found) {
  throw nb::type_error(("Tenon has no tensors of dtype " + found +
                        ": convert it, for example with x.astype(\"float32\")")
                           .c_str());
}

// The dtype of an array: by NumPy's number, or by the name of ml_dtypes.
DLDataType dtype_of(PyObject* object) {
  const PyArray_Descr* descr = PyArray_DESCR(reinterpret_cast<PyArrayObject*>(object));
  if (descr->byteorder != '>') {
    const int number = descr->type_num;
    if (const DtypeRow* row = row_of_numpy(number)) return row->dtype;
    // Two numbers have 64 bits.
    if (number == NPY_LONGLONG) return dtype(kDLInt, 64);
    if (number == NPY_ULONGLONG) return dtype(kDLUInt, 64);
    const std::string name = string_of(nb::object(nb::handle(descr->typeobj).attr("__name__")));
    // Of the dtype: a subclass may define an array's attributes.
    const nb::handle dtype(reinterpret_cast<const PyObject*>(descr));
    const auto bits = 8 * nb::cast<int64_t>(dtype.attr("itemsize"));
    if (const DtypeRow* row = row_of_ml_dtype(name, bits)) return row->dtype;
  }
  fail_dtype(string_of(nb::str(nb::handle(reinterpret_cast<const PyObject*>(descr)))));
}

// Whether the elements of an array may be strings: NumPy's str, bytes and variable-width strings,
// and objects.
bool may_hold_strings(PyObject* array) {
  const int number = PyArray_DESCR(reinterpret_cast<PyArrayObject*>(array))->type_num;
  constexpr int kVariableWidth = 2056;  // NPY_VSTRING, of NumPy 2
  return number == NPY_UNICODE || number == NPY_STRING || number == NPY_OBJECT ||
         number == kVariableWidth;
}

[[noreturn]] void fail_output(const char* why) {
  throw nb::type_error((std::string("an output can't be ") + why).c_str());
}

void borrow_array(PyObject* object, Borrow how, Value* out) {
  if (may_hold_strings(object)) [[unlikely]] {
    if (how == Borrow::kOutput)
      fail_output("an array of strings: they have no memory of their own");
    *out = string_tensor(object);
    return;
  }
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  const DLDataType type = dtype_of(object);
  Strides strides;
  const bool compact = PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS);
  const int rank = PyArray_NDIM(array);
  if (!compact && !strides.set(rank, PyArray_STRIDES(array), type)) {
    // A field of a structured array: its elements are further apart than whole ones.
    if (how == Borrow::kOutput) fail_output("a field of a structured array");
    // Not the method, which a subclass may define.
    const nb::object copy =
        nb::module_::import_("numpy").attr("array")(nb::handle(object), nb::arg("order") = "C");
    borrow_array(copy.ptr(), how, out);
    return;
  }
  const DLTensor view = view_of(PyArray_DATA(array), rank, PyArray_DIMS(array),
                                compact ? nullptr : strides.data(), type);
  Py_INCREF(object);
  const bool read_only = how == Borrow::kReadOnly || !PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEABLE);
  check(tenon_tensor_from_memory(&view, read_only, object, release_object, out->out()));
}

// DLPack's table of functions for its exchange without capsules (DLPackExchangeAPI, since its
// version 1.2), as far as it is used here. A class provides it as __dlpack_c_exchange_api__.
struct ExchangeApi {
  DLPackVersion version;
  void* older;  // a table of an earlier version
  int (*allocate)(DLTensor*, DLManagedTensorVersioned**, void*,
                  void (*)(void*, const char*, const char*));
  int (*from_object)(void* object,
                     DLManagedTensorVersioned** out);  // -1: a Python exception is set
};

// A class with __dlpack__, as far as it is known. Classes live on, so that no other class gets the
// address of one.
struct Exporter {
  PyTypeObject* type = nullptr;
  const ExchangeApi* api = nullptr;
  // PyTorch's Tensor.is_neg(), of tensors whose elements are to be negated when they are read,
  // which DLPack can't express. A function in C, since looking the method up takes longer.
  PyCFunction is_neg = nullptr;
};

Exporter exporter_of(PyTypeObject* type) {
  const nb::handle object(reinterpret_cast<PyObject*>(type));
  if (!nb::hasattr(object, "__dlpack__")) return {};
  Exporter made{type};
  const nb::object capsule = nb::getattr(object, "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) {
    const auto* api =
        static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (api->version.major == DLPACK_MAJOR_VERSION) made.api = api;
  }
  const nb::object is_neg = nb::getattr(object, "is_neg", nb::none());
  if (Py_TYPE(is_neg.ptr()) == &PyMethodDescr_Type) {
    const auto* method = reinterpret_cast<PyMethodDescrObject*>(is_neg.ptr());
    // A class may have taken the method from one that it doesn't derive from.
    if (method->d_method->ml_flags == METH_NOARGS && PyType_IsSubtype(type, PyDescr_TYPE(method)))
      made.is_neg = method->d_method->ml_meth;
  }
  return made;
}

// The last class on this thread that isn't a usual one.
const Exporter& exporter(PyObject* object) {
  static thread_local Exporter known;
  PyTypeObject* const type = Py_TYPE(object);
  if (known.type != type) [[unlikely]] {
    Exporter made = exporter_of(type);
    if (!made.api && !made.is_neg) made.type = nullptr;  // not worth keeping the class
    Py_XINCREF(made.type);
    known = made;
  }
  return known;
}

// The object itself, or a copy whose elements are those that one reads.
nb::object resolved(const Exporter& from, nb::handle object, Borrow how) {
  if (from.is_neg) {
    const nb::object answer = nb::steal(from.is_neg(object.ptr(), nullptr));
    if (!answer.is_valid()) throw nb::python_error();
    if (answer.ptr() == Py_True) [[unlikely]] {
      if (how == Borrow::kOutput) fail_output("a tensor with PyTorch's negative bit (is_neg())");
      return object.attr("resolve_neg")();
    }
  }
  return nb::borrow(object);
}

// False if the class can't export the object; its __dlpack__ then says why in better words.
bool borrow_exchanged(const ExchangeApi& api, PyObject* object, Borrow how, Value* out) {
  DLManagedTensorVersioned* managed = nullptr;
  if (api.from_object(object, &managed) != 0) {
    PyErr_Clear();
    return false;
  }
  if (how == Borrow::kReadOnly) managed->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  check(tenon_tensor_from_dlpack_versioned(managed, out->out()));
  return true;
}

[[noreturn]] void fail_capsule(nb::handle object, PyObject* returned) {
  const bool is_used = PyCapsule_IsValid(returned, "used_dltensor") ||
                       PyCapsule_IsValid(returned, "used_dltensor_versioned");
  const std::string found = is_used                          ? "a capsule that was used before"
                            : PyCapsule_CheckExact(returned) ? "a capsule without a tensor"
                                                             : Py_TYPE(returned)->tp_name;
  throw nb::type_error((std::string(Py_TYPE(object.ptr())->tp_name) +
                        ".__dlpack__() must return a capsule with a tensor, not " + found)
                           .c_str());
}

void borrow_capsule(nb::handle object, Value* out) {
  nb::object capsule;
  try {
    capsule = object.attr("__dlpack__")(
        nb::arg("max_version") = nb::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;  // a producer from before version 1.0
    capsule = object.attr("__dlpack__")();
  }
  PyObject* c = capsule.ptr();
  if (PyCapsule_IsValid(c, "dltensor_versioned")) {
    auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(c, "dltensor_versioned"));
    PyCapsule_SetName(c, "used_dltensor_versioned");
    check(tenon_tensor_from_dlpack_versioned(managed, out->out()));
    return;
  }
  if (!PyCapsule_IsValid(c, "dltensor")) fail_capsule(object, c);
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(c, "dltensor"));
  PyCapsule_SetName(c, "used_dltensor");
  check(tenon_tensor_from_dlpack(managed, 0, out->out()));
}

void borrow_buffer(PyObject* object, Borrow how, Value* out) {
  bool read_only = how == Borrow::kReadOnly;
  auto owned = std::make_unique<Py_buffer>();
  Py_buffer& buffer = *owned;
  if (PyObject_GetBuffer(object, &buffer, PyBUF_RECORDS) != 0) {
    PyErr_Clear();
    read_only = true;
    if (PyObject_GetBuffer(object, &buffer, PyBUF_RECORDS_RO) != 0) throw nb::python_error();
  }
  std::string_view format = buffer.format ? buffer.format : "B";
  if (format.size() == 2 && (format[0] == '@' || format[0] == '=' || format[0] == '<'))
    format.remove_prefix(1);
  const DtypeRow* row = row_of_format(format);
  const bool fits = row && row->dtype.bits / 8 == buffer.itemsize;
  Strides strides;
  // Some exporters, such as ctypes, leave out the strides of compact arrays though these are asked
  // for.
  if (!fits || (buffer.strides && !strides.set(buffer.ndim, buffer.strides, row->dtype))) {
    const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> released(&buffer, PyBuffer_Release);
    fail_dtype("'" + std::string(format) + "' (of the buffer protocol)");
  }
  const DLTensor view = view_of(buffer.buf, buffer.ndim, buffer.shape,
                                buffer.strides ? strides.data() : nullptr, row->dtype);
  check(tenon_tensor_from_memory(&view, read_only || buffer.readonly, owned.release(),
                                 release_buffer, out->out()));
}

}  // namespace

bool is_numpy(PyObject* object, const char* name, std::atomic<PyTypeObject*>& known) {
  PyTypeObject* type = known.load(std::memory_order_acquire);
  if (!type) {
    // There is no such object before NumPy is imported.
    const nb::object numpy = nb::steal(PyImport_GetModule(nb::str("numpy").ptr()));
    nb::object found;
    if (numpy.is_valid()) found = nb::steal(PyObject_GetAttrString(numpy.ptr(), name));
    if (!found.is_valid()) PyErr_Clear();
    if (!found.is_valid() || !PyType_Check(found.ptr())) return false;
    type = reinterpret_cast<PyTypeObject*>(found.release().ptr());  // never freed
    known.store(type, std::memory_order_release);
  }
  return PyObject_TypeCheck(object, type);
}

bool borrow_tensor(nb::handle object, Borrow how, Value* out) {
  PyTypeObject* const type = Py_TYPE(object.ptr());
  static constinit std::atomic<PyTypeObject*> array = nullptr;
  const bool is_array = type == array.load(std::memory_order_acquire);
  if (is_array || is_numpy(object.ptr(), "ndarray", array)) {
    borrow_array(object.ptr(), how, out);
    return true;
  }
  if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type ||
      type == &PyBool_Type || type == &PyTuple_Type || type == &PyList_Type ||
      type == &PyDict_Type || PyBytes_Check(object.ptr()) || object.is_none())
    return false;
  const Exporter from = exporter(object.ptr());
  if (from.api || from.is_neg) {
    const nb::object tensor = resolved(from, object, how);
    // A subclass may resolve it to anything.
    const bool is_same_class = reinterpret_cast<PyTypeObject*>(tensor.type().ptr()) == type;
    if (from.api && is_same_class && borrow_exchanged(*from.api, tensor.ptr(), how, out))
      return true;
    borrow_capsule(tensor, out);
    return true;
  }
  if (nb::hasattr(object, "__dlpack__")) {
    borrow_capsule(object, out);
    return true;
  }
  if (PyObject_CheckBuffer(object.ptr())) {
    borrow_buffer(object.ptr(), how, out);
    return true;
  }
  return false;
}

}  // namespace tenon::python

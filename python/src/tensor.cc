// tenon.Tensor, and tensors that share the memory of Python objects.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "python/src/classes.h"
#include "python/src/error.h"
#include "python/src/gil.h"

namespace tenon::python {
namespace {

PyTypeObject* tensor_type = nullptr;

constexpr DLDataType dtype(int code, int bits) {
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
}

// The dtypes that both sides have. `format` is the buffer protocol's code, empty where it has none.
struct DtypeRow {
  const char* name;
  DLDataType dtype;
  const char* format;
  int numpy;  // NumPy's number; -1 for the dtypes of ml_dtypes
};
constexpr DtypeRow kDtypes[] = {
    {"bool", dtype(kDLBool, 8), "?", NPY_BOOL},
    {"int8", dtype(kDLInt, 8), "b", NPY_INT8},
    {"int16", dtype(kDLInt, 16), "h", NPY_INT16},
    {"int32", dtype(kDLInt, 32), "i", NPY_INT32},
    {"int64", dtype(kDLInt, 64), "q", NPY_INT64},
    {"uint8", dtype(kDLUInt, 8), "B", NPY_UINT8},
    {"uint16", dtype(kDLUInt, 16), "H", NPY_UINT16},
    {"uint32", dtype(kDLUInt, 32), "I", NPY_UINT32},
    {"uint64", dtype(kDLUInt, 64), "Q", NPY_UINT64},
    {"float16", dtype(kDLFloat, 16), "e", NPY_FLOAT16},
    {"float32", dtype(kDLFloat, 32), "f", NPY_FLOAT32},
    {"float64", dtype(kDLFloat, 64), "d", NPY_FLOAT64},
    {"bfloat16", dtype(kDLBfloat, 16), "", -1},
};

bool same(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
const DtypeRow* row_of(DLDataType type) {
  for (const DtypeRow& row : kDtypes)
    if (same(row.dtype, type)) return &row;
  return nullptr;
}

// The rows by NumPy's number, which has few values; null for the others.
constexpr size_t kNumpyNumbers = 32;
constexpr auto kByNumpy = [] {
  std::array<const DtypeRow*, kNumpyNumbers> rows{};
  for (const DtypeRow& row : kDtypes)
    if (row.numpy >= 0) rows[static_cast<size_t>(row.numpy)] = &row;
  return rows;
}();
const DtypeRow* row_of_numpy(int number) {
  return static_cast<size_t>(number) < kNumpyNumbers ? kByNumpy[static_cast<size_t>(number)]
                                                     : nullptr;
}

size_t elements_of(const DLTensor& t) {
  size_t count = 1;
  for (int32_t i = 0; i < t.ndim; ++i) count *= static_cast<size_t>(t.shape[i]);
  return count;
}
size_t bytes_of(const DLTensor& t) {
  return (t.dtype.bits + 7u) / 8u * t.dtype.lanes * elements_of(t);
}

bool is_empty(const DLTensor& t) {
  return std::find(t.shape, t.shape + t.ndim, 0) != t.shape + t.ndim;
}

// In row-major order without gaps. An empty tensor is, whatever its strides; they may have
// overflowed.
bool is_compact(const DLTensor& t) {
  if (!t.strides || is_empty(t)) return true;
  int64_t stride = 1;
  for (int32_t i = t.ndim; i-- > 0; stride *= t.shape[i]) {
    if (t.shape[i] != 1 && t.strides[i] != stride) return false;
  }
  return true;
}
// In column-major order without gaps.
bool is_column_major(const DLTensor& t) {
  if (is_empty(t)) return true;
  if (!t.strides) {
    return std::count_if(t.shape, t.shape + t.ndim, [](int64_t n) { return n != 1; }) <= 1;
  }
  int64_t stride = 1;
  for (int32_t i = 0; i < t.ndim; stride *= t.shape[i++]) {
    if (t.shape[i] != 1 && t.strides[i] != stride) return false;
  }
  return true;
}

constexpr char kElsewhere[] = "this tensor is on another device: copy it to the CPU first";
bool is_elsewhere(const DLTensor& t) {
  return t.device.device_type != kDLCPU;
}
// A BufferError unless the host can read the memory.
void require_host(const DLTensor& t) {
  if (!is_elsewhere(t)) return;
  throw nb::builtin_exception(nb::exception_type::buffer_error, kElsewhere);
}

void* data_of(const DLTensor& t) {
  return static_cast<char*>(t.data) + t.byte_offset;
}

// Copies the elements in row-major order.
void copy_elements(const DLTensor& t, char* to) {
  require_host(t);
  const size_t count = elements_of(t);
  if (count == 0) return;
  const char* const from = static_cast<const char*>(data_of(t));
  if (is_compact(t)) {
    std::memcpy(to, from, bytes_of(t));
    return;
  }
  const size_t element = bytes_of(t) / count;
  const auto rank = static_cast<size_t>(t.ndim);
  std::vector<int64_t> at(rank, 0);
  for (size_t n = 0; n < count; ++n, to += element) {
    int64_t place = 0;
    for (size_t i = 0; i < rank; ++i) place += at[i] * t.strides[i];
    std::memcpy(to, from + place * static_cast<int64_t>(element), element);
    for (size_t i = rank; i-- > 0 && ++at[i] == t.shape[i];) at[i] = 0;
  }
}

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
    const Py_ssize_t element = type.bits / 8;
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
    const std::string name = nb::cast<std::string>(nb::handle(descr->typeobj).attr("__name__"));
    // Of the dtype: a subclass may define an array's attributes.
    const nb::handle dtype(reinterpret_cast<const PyObject*>(descr));
    const auto bits = 8 * nb::cast<int64_t>(dtype.attr("itemsize"));
    for (const DtypeRow& row : kDtypes) {
      if (row.numpy < 0 && name == row.name && bits == row.dtype.bits) return row.dtype;
    }
  }
  fail_dtype(nb::cast<std::string>(nb::str(nb::handle(reinterpret_cast<const PyObject*>(descr)))));
}

[[noreturn]] void fail_output(const char* why) {
  throw nb::type_error((std::string("an output can't be ") + why).c_str());
}

void borrow_array(PyObject* object, Borrow how, Value* out) {
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
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(c, "dltensor"));
  if (!managed) throw nb::python_error();
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
  const DtypeRow* row = nullptr;
  for (const DtypeRow& r : kDtypes)
    if (format == r.format) row = &r;
  // C's long has 64 bits here, under a code of its own.
  if (format == "l") row = row_of(dtype(kDLInt, 8 * sizeof(long)));
  if (format == "L") row = row_of(dtype(kDLUInt, 8 * sizeof(long)));
  const bool fits = row && row->dtype.bits / 8 == buffer.itemsize;
  Strides strides;
  // Some exporters, such as ctypes, leave out the strides of compact arrays though these are asked
  // for.
  if (!fits || (buffer.strides && !strides.set(buffer.ndim, buffer.strides, row->dtype))) {
    const std::string found(format);
    PyBuffer_Release(&buffer);
    fail_dtype("'" + found + "' (of the buffer protocol)");
  }
  const DLTensor view = view_of(buffer.buf, buffer.ndim, buffer.shape,
                                buffer.strides ? strides.data() : nullptr, row->dtype);
  check(tenon_tensor_from_memory(&view, read_only || buffer.readonly, owned.release(),
                                 release_buffer, out->out()));
}

// ---- tenon.Tensor ----

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  if (!nb::inst_ready(self)) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "this tensor was made without __init__");
    return -1;
  }
  auto* tensor = nb::inst_ptr<Tensor>(self);
  const DLTensor& t = tensor->view();
  const DtypeRow* row = row_of(t.dtype);
  view->obj = nullptr;
  if (is_elsewhere(t)) {
    PyErr_SetString(PyExc_BufferError, kElsewhere);
    return -1;
  }
  if (!row || !*row->format) {
    PyErr_Format(PyExc_BufferError, "the buffer protocol has no %s", dtype_name(t.dtype).c_str());
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) && tensor->is_read_only()) {
    PyErr_SetString(PyExc_BufferError, "this tensor is read-only");
    return -1;
  }
  const auto asks_for = [flags](int all) { return (flags & all) == all; };
  const bool is_row_major = is_compact(t);
  if (!is_row_major && (asks_for(PyBUF_C_CONTIGUOUS) || !asks_for(PyBUF_STRIDES))) {
    PyErr_SetString(PyExc_BufferError, "this tensor isn't in row-major order without gaps");
    return -1;
  }
  if (asks_for(PyBUF_F_CONTIGUOUS) && !is_column_major(t)) {
    PyErr_SetString(PyExc_BufferError, "this tensor isn't in column-major order without gaps");
    return -1;
  }
  if (asks_for(PyBUF_ANY_CONTIGUOUS) && !is_row_major && !is_column_major(t)) {
    PyErr_SetString(PyExc_BufferError, "this tensor has gaps between its elements");
    return -1;
  }
  const auto rank = static_cast<size_t>(t.ndim);
  auto* sizes = new (std::nothrow) Py_ssize_t[2 * rank + 1];
  if (!sizes) {
    PyErr_NoMemory();
    return -1;
  }
  const Py_ssize_t element = t.dtype.bits / 8;
  const bool empty = is_empty(t);
  Py_ssize_t stride = element;
  for (size_t i = rank; i-- > 0;) {
    sizes[i] = t.shape[i];
    sizes[rank + i] = t.strides && !empty ? t.strides[i] * element : stride;
    if (!empty) stride *= t.shape[i];
  }
  view->buf = data_of(t);
  view->len = static_cast<Py_ssize_t>(bytes_of(t));
  view->itemsize = element;
  view->readonly = tensor->is_read_only();
  view->ndim = asks_for(PyBUF_ND) ? t.ndim : 0;
  view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(row->format) : nullptr;
  view->shape = asks_for(PyBUF_ND) ? sizes : nullptr;
  view->strides = asks_for(PyBUF_STRIDES) ? sizes + rank : nullptr;
  view->suboffsets = nullptr;
  view->internal = sizes;
  Py_INCREF(self);
  view->obj = self;
  return 0;
}
void release_view(PyObject*, Py_buffer* view) noexcept {
  delete[] static_cast<Py_ssize_t*>(view->internal);
}

const PyType_Slot kTensorSlots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_view)},
    {0, nullptr},
};

// The description of a tensor that is read byte by byte.
const DLTensor& compact(const Tensor& tensor) {
  require_host(tensor.view());
  if (!is_compact(tensor.view())) {
    throw nb::builtin_exception(
        nb::exception_type::buffer_error,
        "this tensor isn't compact: copy it with numpy.ascontiguousarray(t)");
  }
  return tensor.view();
}

template <class Managed>
void delete_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // a consumer took the tensor
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}

nb::object to_dlpack(const Tensor& tensor, nb::handle stream, nb::handle max_version,
                     nb::handle device, nb::handle copy) {
  if (!stream.is_none() && nb::cast<int64_t>(stream) != -1) {
    throw nb::value_error("a tensor on the CPU has no streams: stream must be None");
  }
  if (!device.is_none() && !device.equal(nb::make_tuple(int{kDLCPU}, 0))) {
    throw nb::builtin_exception(nb::exception_type::buffer_error,
                                "this tensor is on the CPU and can't be copied to another device");
  }
  const bool versioned = !max_version.is_none() && nb::cast<int>(max_version[nb::int_(0)]) >= 1;
  Value copied;
  const tenon_any* any = tensor.value.get();
  // Consumers such as PyTorch ignore that a tensor is read-only, and a write would change the
  // program.
  if (copy.is_none() ? tensor.is_constant() : nb::cast<bool>(copy)) {
    const DLTensor& t = tensor.view();
    check(tenon_tensor_create(t.shape, t.ndim, t.dtype, t.device, copied.out()));
    copy_elements(t, static_cast<char*>(tenon_tensor_view(copied.get())->data));
    any = copied.get();
  }
  PyObject* capsule = nullptr;
  if (versioned) {
    DLManagedTensorVersioned* managed = nullptr;
    check(tenon_tensor_to_dlpack_versioned(any, &managed));
    capsule = PyCapsule_New(managed, "dltensor_versioned", [](PyObject* c) {
      delete_capsule<DLManagedTensorVersioned>(c, "dltensor_versioned");
    });
  } else {
    DLManagedTensor* managed = nullptr;
    if (tenon_tensor_to_dlpack(any, &managed) != 0) {
      throw nb::builtin_exception(nb::exception_type::buffer_error, tenon_last_error());
    }
    capsule = PyCapsule_New(managed, "dltensor",
                            [](PyObject* c) { delete_capsule<DLManagedTensor>(c, "dltensor"); });
  }
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

nb::object shape_of(const Tensor& tensor) {
  const DLTensor& t = tensor.view();
  nb::object out = nb::steal(PyTuple_New(t.ndim));
  for (int32_t i = 0; i < t.ndim; ++i)
    PyTuple_SET_ITEM(out.ptr(), i, nb::int_(t.shape[i]).release().ptr());
  return out;
}

// numpy.ndarray of a dtype that the buffer protocol lacks: its bytes, seen as ml_dtypes'.
nb::object to_numpy(nb::handle self) {
  const Tensor& tensor = Tensor::of(self);
  const DLTensor& t = tensor.view();
  const nb::module_ numpy = nb::module_::import_("numpy");
  const DtypeRow* row = row_of(t.dtype);
  if (row && *row->format)
    return numpy.attr("asarray")(nb::steal(PyMemoryView_FromObject(self.ptr())));
  const std::string name = dtype_name(t.dtype);
  nb::object type;
  try {
    type = nb::module_::import_("ml_dtypes").attr(name.c_str());
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_ImportError) && !e.matches(PyExc_AttributeError)) throw;
    throw nb::type_error(("NumPy has no " + name + ": `pip install ml_dtypes` adds it").c_str());
  }
  compact(tensor);
  const nb::object base = nb::module_::import_("tenon._values")
                              .attr("_Bytes")(self, reinterpret_cast<uintptr_t>(data_of(t)),
                                              bytes_of(t), tensor.is_read_only());
  return numpy.attr("asarray")(base).attr("view")(type).attr("reshape")(shape_of(tensor));
}

// Pickles and copies: a function that makes the tensor, and its arguments. They need no NumPy.
nb::object reduce(const Tensor& tensor) {
  const DLTensor& t = tensor.view();
  nb::object bytes =
      nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes_of(t))));
  if (!bytes.is_valid()) throw nb::python_error();
  copy_elements(t, PyBytes_AS_STRING(bytes.ptr()));
  const nb::object type = nb::make_tuple(t.dtype.code, t.dtype.bits, t.dtype.lanes);
  return nb::make_tuple(nb::module_::import_("tenon._values").attr("_tensor_of"),
                        nb::make_tuple(type, shape_of(tensor), bytes));
}

Tensor of_bytes(std::tuple<uint8_t, uint8_t, uint16_t> type, const std::vector<int64_t>& sizes,
                nb::bytes bytes) {
  const auto [code, bits, lanes] = type;
  Value value;
  check(tenon_tensor_create(sizes.data(), static_cast<int32_t>(sizes.size()), {code, bits, lanes},
                            {kDLCPU, 0}, value.out()));
  const DLTensor& t = *tenon_tensor_view(value.get());
  if (bytes_of(t) != bytes.size()) throw nb::value_error("a damaged tensor: its size is wrong");
  if (bytes.size() > 0) std::memcpy(t.data, bytes.c_str(), bytes.size());
  return Tensor{std::move(value)};
}

// `==` or `!=` of the elements, by NumPy.
nb::object compared(nb::handle self, nb::handle other, int how) {
  const nb::object right =
      Py_TYPE(other.ptr()) == tensor_type ? to_numpy(other) : nb::borrow(other);
  nb::object result = nb::steal(PyObject_RichCompare(to_numpy(self).ptr(), right.ptr(), how));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

}  // namespace

nb::object dtype_object(DLDataType type) {
  return nb::module_::import_("tenon._values").attr("_dtype_of")(dtype_name(type).c_str());
}

PyTypeObject* tensor_class() {
  return tensor_type;
}

std::string dtype_name(DLDataType type) {
  if (const DtypeRow* row = row_of(type)) return row->name;
  tenon_any raw = TENON_NONE_VALUE;
  raw.type_index = TENON_DTYPE;
  raw.v.dtype = type;
  return nb::cast<std::string>(repr_of(Value::copy_of(raw)));
}

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

// "tensor[2; i64] = [3, 4]"; the type alone where there is no NumPy, or no dtype of NumPy's.
nb::object text_of(nb::handle_t<Tensor> self) {
  const nb::object type = repr_of(Tensor::of(self).value);
  try {
    const nb::object prefix = type + nb::str(" = ");
    constexpr int kShownElements = 64;
    return prefix + nb::module_::import_("numpy").attr("array2string")(
                        to_numpy(self), nb::arg("separator") = ", ",
                        nb::arg("threshold") = kShownElements, nb::arg("prefix") = prefix);
  } catch (nb::python_error&) {
    return type;
  }
}

nb::object new_tensor(Value value) {
  nb::object made = nb::inst_alloc(reinterpret_cast<PyObject*>(tensor_type));
  new (nb::inst_ptr<Tensor>(made)) Tensor{std::move(value)};
  nb::inst_mark_ready(made);
  return made;
}

void define_tensor(nb::module_& m) {
  nb::class_<Tensor> c(m, "Tensor", nb::type_slots(kTensorSlots), nb::is_final(), R"(
A tensor on the CPU: what functions return, and what they take without conversion.

Its elements are shared, never copied, by ``numpy.asarray(t)``, ``torch.from_dlpack(t)`` and every other consumer of
DLPack or the buffer protocol. ``Tensor(x)`` shares the elements of such an object.

>>> import numpy as np, tenon
>>> t = tenon.Tensor(np.arange(6, dtype="float32").reshape(2, 3))
>>> t.shape, t.dtype
((2, 3), 'float32')
>>> np.asarray(t)[1]
array([3., 4., 5.], dtype=float32)
)");
  c.def(
      "__init__",
      [](Tensor* self, nb::handle object) {
        Value value = to_value(object, {TENON_TENSOR, dtype(kDLFloat, 32)});
        if (value.type_index() != TENON_TENSOR) throw nb::type_error("not a tensor");
        new (self) Tensor{std::move(value)};
      },
      nb::arg("array"), nb::sig("def __init__(self, array: object, /) -> None"));
  c.def_prop_ro("shape", &shape_of, "The sizes, a tuple.",
                nb::sig("def shape(self) -> tuple[int, ...]"));
  c.def_prop_ro(
      "dtype", [](const Tensor& t) { return dtype_object(t.view().dtype); },
      "The elements' type, by NumPy's name, 'float32': a str that also equals numpy.float32.",
      nb::sig("def dtype(self) -> str"));
  c.def_prop_ro(
      "ndim", [](const Tensor& t) { return t.view().ndim; }, "The number of dimensions.");
  c.def_prop_ro(
      "size", [](const Tensor& t) { return elements_of(t.view()); }, "The number of elements.");
  c.def_prop_ro(
      "nbytes", [](const Tensor& t) { return bytes_of(t.view()); }, "The elements' bytes.");
  c.def_prop_ro("read_only", &Tensor::is_read_only,
                "Whether the elements can't be written: those of constants, of arguments that a "
                "function returns, and of results of one call that share memory.");
  c.def(
      "numpy", [](nb::handle_t<Tensor> self) { return to_numpy(self); },
      "A NumPy array of the same memory.", nb::sig("def numpy(self) -> NDArray[typing.Any]"));
  c.def(
      "__array__",
      [](nb::handle_t<Tensor> self, nb::handle dtype, nb::handle copy) -> nb::object {
        nb::object array = to_numpy(self);
        const bool convert = !dtype.is_none() && !array.attr("dtype").equal(dtype);
        if (convert && !copy.is_none() && !nb::cast<bool>(copy))
          throw nb::value_error("another dtype needs a copy");
        if (convert) return array.attr("astype")(dtype);
        return !copy.is_none() && nb::cast<bool>(copy) ? array.attr("copy")() : array;
      },
      nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
      nb::sig("def __array__(self, dtype: object = None, copy: bool | None = None) -> "
              "NDArray[typing.Any]"));
  c.def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
        nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
        nb::arg("copy") = nb::none(),
        nb::sig("def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | "
                "None = None, "
                "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object"));
  c.def(
      "__dlpack_device__",
      [](const Tensor& t) {
        return nb::make_tuple(static_cast<int>(t.view().device.device_type),
                              t.view().device.device_id);
      },
      nb::sig("def __dlpack_device__(self) -> tuple[int, int]"));
  c.def("__len__", [](const Tensor& t) {
    if (t.view().ndim == 0) throw nb::type_error("a tensor of rank 0 has no length");
    return t.view().shape[0];
  });
  c.def(
      "__getitem__",
      [](nb::handle_t<Tensor> self, nb::handle index) { return nb::object(to_numpy(self)[index]); },
      nb::sig("def __getitem__(self, index: object, /) -> NDArray[typing.Any]"),
      "Elements, as NumPy indexes them.");
  c.def(
      "item", [](nb::handle_t<Tensor> self) { return to_numpy(self).attr("item")(); },
      "The only element, as a Python number.", nb::sig("def item(self) -> int | float | bool"));
  c.def(
      "tolist", [](nb::handle_t<Tensor> self) { return to_numpy(self).attr("tolist")(); },
      "The elements as nested lists.", nb::sig("def tolist(self) -> object"));
  c.def(
      "__eq__",
      [](nb::handle_t<Tensor> self, nb::handle other) { return compared(self, other, Py_EQ); },
      nb::arg("other").none(), "The elements' equality, as an array of NumPy.",
      nb::sig("def __eq__(self, other: object, /) -> typing.Any"));
  c.def(
      "__ne__",
      [](nb::handle_t<Tensor> self, nb::handle other) { return compared(self, other, Py_NE); },
      nb::arg("other").none(), nb::sig("def __ne__(self, other: object, /) -> typing.Any"));
  c.def("__reduce__", &reduce, nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
  c.def("__float__",
        [](nb::handle_t<Tensor> self) { return nb::float_(to_numpy(self).attr("item")()); });
  c.def("__int__",
        [](nb::handle_t<Tensor> self) { return nb::int_(to_numpy(self).attr("item")()); });
  c.def("__repr__", &text_of, "The type and the elements; of more than 64, the outer ones.",
        nb::sig("def __repr__(self) -> str"));
  tensor_type = reinterpret_cast<PyTypeObject*>(c.ptr());
  m.def("tensor_of", &of_bytes, nb::arg("dtype"), nb::arg("shape"), nb::arg("bytes"),
        "A tensor with these elements, from the arguments that Tensor.__reduce__ gives.",
        nb::sig("def tensor_of(dtype: tuple[int, int, int], shape: "
                "collections.abc.Sequence[int], bytes: bytes) -> Tensor"));
}

}  // namespace tenon::python

// tenon.Tensor.
#include <cstring>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/src/classes.h"
#include "python/src/error.h"
#include "python/src/nanobind.h"
#include "python/src/tensor_data.h"

namespace tenon::python {
namespace {

PyTypeObject* tensor_type = nullptr;

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
    try {
      PyErr_Format(PyExc_BufferError, "the buffer protocol has no %s", dtype_name(t.dtype).c_str());
    } catch (...) {
      raise_current();
    }
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

// An argument as a T; a TypeError that says what it is.
template <class T>
T taken(nb::handle argument, const char* what) {
  T out{};
  if (!nb::try_cast<T>(argument, out)) throw nb::type_error(what);
  return out;
}

nb::object to_dlpack(const Tensor& tensor, nb::handle stream, nb::handle max_version,
                     nb::handle device, nb::handle copy) {
  if (!stream.is_none() && taken<int64_t>(stream, "stream is a number or None") != -1) {
    throw nb::value_error("a tensor on the CPU has no streams: stream must be None");
  }
  if (!device.is_none() && !device.equal(nb::make_tuple(int{kDLCPU}, 0))) {
    throw nb::builtin_exception(nb::exception_type::buffer_error,
                                "this tensor is on the CPU and can't be copied to another device");
  }
  const bool versioned =
      !max_version.is_none() &&
      taken<int64_t>(max_version[nb::int_(0)], "max_version is a pair of integers or None") >= 1;
  if (is_strings(tensor.view().dtype))
    throw nb::builtin_exception(nb::exception_type::buffer_error,
                                "DLPack can't express a tensor of strings: use t.numpy()");
  Value copied;
  const tenon_any* any = tensor.value.get();
  // Consumers such as PyTorch ignore that a tensor is read-only, and a write would change the
  // program.
  if (copy.is_none() ? tensor.is_constant() : taken<bool>(copy, "copy is a bool or None")) {
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
  return sizes_of(tensor.view());
}

// numpy.ndarray of a dtype that the buffer protocol lacks: its bytes, seen as ml_dtypes'.
nb::object to_numpy(nb::handle self) {
  const Tensor& tensor = Tensor::of(self);
  const DLTensor& t = tensor.view();
  if (is_strings(t.dtype)) return string_array(tensor.value);
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
  const nb::module_ values = nb::module_::import_("tenon._values");
  if (is_strings(t.dtype))
    return nb::make_tuple(values.attr("_strings_of"), nb::make_tuple(string_array(tensor.value)));
  nb::object bytes =
      nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes_of(t))));
  if (!bytes.is_valid()) throw nb::python_error();
  copy_elements(t, PyBytes_AS_STRING(bytes.ptr()));
  const nb::object type = nb::make_tuple(t.dtype.code, t.dtype.bits, t.dtype.lanes);
  return nb::make_tuple(values.attr("_tensor_of"), nb::make_tuple(type, shape_of(tensor), bytes));
}

Tensor of_bytes(std::tuple<uint8_t, uint8_t, uint16_t> type, nb::handle shape, nb::bytes bytes) {
  const auto [code, bits, lanes] = type;
  std::vector<int64_t> sizes;
  for (nb::handle size : nb::borrow<nb::sequence>(shape)) {
    int64_t n = 0;
    if (!nb::try_cast(size, n))
      throw nb::value_error("the pickled tensor is damaged: a size is not an integer");
    sizes.push_back(n);
  }
  Value value;
  check(tenon_tensor_create(sizes.data(), static_cast<int32_t>(sizes.size()), {code, bits, lanes},
                            {kDLCPU, 0}, value.out()));
  const DLTensor& t = *tenon_tensor_view(value.get());
  if (bytes_of(t) != bytes.size())
    throw nb::value_error("the pickled tensor is damaged: its size doesn't match its shape");
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

// "tensor[2; i64] = [3, 4]"; the type alone where there is no NumPy, or no dtype of NumPy's.
nb::object text_of(nb::handle_t<Tensor> self) {
  nb::object type = repr_of(Tensor::of(self).value);
  try {
    const nb::object prefix = type + nb::str(" = ");
    constexpr int kShownElements = 64;
    return prefix + nb::module_::import_("numpy").attr("array2string")(
                        to_numpy(self), nb::arg("separator") = ", ",
                        nb::arg("threshold") = kShownElements, nb::arg("prefix") = prefix);
  } catch (nb::builtin_exception&) {  // of to_numpy
    return type;
  } catch (nb::python_error& e) {
    if (e.matches(PyExc_MemoryError)) throw;
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
        if (value.type_index() != TENON_TENSOR) {
          throw nb::type_error((std::string("an array, a tensor or a nested list of numbers is "
                                            "expected, not ") +
                                Py_TYPE(object.ptr())->tp_name)
                                   .c_str());
        }
        new (self) Tensor{std::move(value)};
      },
      nb::arg("array").none(), nb::sig("def __init__(self, array: object, /) -> None"));
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
  // Without it, Python would ask for the length.
  c.def(
      "__bool__",
      [](nb::handle_t<Tensor> self) { return nb::cast<bool>(to_numpy(self).attr("__bool__")()); },
      "Whether the only element isn't zero. A ValueError of NumPy's for any other number of "
      "elements.");
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

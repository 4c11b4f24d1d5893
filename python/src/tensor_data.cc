#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include "python/src/tensor_data.h"

#include <numpy/ndarraytypes.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "python/src/error.h"
#include "python/src/nanobind.h"

namespace tenon::python {
namespace {

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
    {"complex64", dtype(kDLComplex, 64), "Zf", NPY_COMPLEX64},
    {"complex128", dtype(kDLComplex, 128), "Zd", NPY_COMPLEX128},
    {"bfloat16", dtype(kDLBfloat, 16), "", -1},
    {"float8_e4m3fn", dtype(kDLFloat8_e4m3fn, 8), "", -1},
    {"float8_e4m3fnuz", dtype(kDLFloat8_e4m3fnuz, 8), "", -1},
    {"float8_e5m2", dtype(kDLFloat8_e5m2, 8), "", -1},
    {"float8_e5m2fnuz", dtype(kDLFloat8_e5m2fnuz, 8), "", -1},
    {"float8_e8m0fnu", dtype(kDLFloat8_e8m0fnu, 8), "", -1},
    {"float4_e2m1fn", dtype(kDLFloat4_e2m1fn, 4), "", -1},
    {"int2", dtype(kDLInt, 2), "", -1},
    {"int4", dtype(kDLInt, 4), "", -1},
    {"uint2", dtype(kDLUInt, 2), "", -1},
    {"uint4", dtype(kDLUInt, 4), "", -1},
};

bool same(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

// The rows by NumPy's number, which has few values; null for the others.
constexpr size_t kNumpyNumbers = 32;
constexpr auto kByNumpy = [] {
  std::array<const DtypeRow*, kNumpyNumbers> rows{};
  for (const DtypeRow& row : kDtypes)
    if (row.numpy >= 0) rows[static_cast<size_t>(row.numpy)] = &row;
  return rows;
}();

}  // namespace

const DtypeRow* row_of(DLDataType type) {
  for (const DtypeRow& row : kDtypes)
    if (same(row.dtype, type)) return &row;
  return nullptr;
}

const DtypeRow* row_of_numpy(int number) {
  return static_cast<size_t>(number) < kNumpyNumbers ? kByNumpy[static_cast<size_t>(number)]
                                                     : nullptr;
}

const DtypeRow* row_of_ml_dtype(std::string_view name, int64_t bits) {
  for (const DtypeRow& row : kDtypes)
    if (row.numpy < 0 && name == row.name && bits == std::max<int64_t>(8, row.dtype.bits))
      return &row;
  return nullptr;
}

const DtypeRow* row_of_format(std::string_view format) {
  // C's long has 64 bits here, under a code of its own.
  if (format == "l") return row_of(dtype(kDLInt, 8 * sizeof(long)));
  if (format == "L") return row_of(dtype(kDLUInt, 8 * sizeof(long)));
  for (const DtypeRow& row : kDtypes)
    if (*row.format && format == row.format) return &row;
  return nullptr;
}

std::string dtype_name(DLDataType type) {
  if (const DtypeRow* row = row_of(type)) return row->name;
  tenon_any raw = TENON_NONE_VALUE;
  raw.type_index = TENON_DTYPE;
  raw.v.dtype = type;
  return string_of(repr_of(Value::copy_of(raw)));
}

size_t elements_of(const DLTensor& t) {
  size_t count = 1;
  for (int32_t i = 0; i < t.ndim; ++i) count *= static_cast<size_t>(t.shape[i]);
  return count;
}
size_t bytes_of_element(const DLTensor& t) {
  return (t.dtype.bits + 7u) / 8u * t.dtype.lanes;
}
size_t bytes_of(const DLTensor& t) {
  return bytes_of_element(t) * elements_of(t);
}

bool is_empty(const DLTensor& t) {
  return std::find(t.shape, t.shape + t.ndim, 0) != t.shape + t.ndim;
}

bool is_compact(const DLTensor& t) {
  if (!t.strides || is_empty(t)) return true;
  int64_t stride = 1;
  for (int32_t i = t.ndim; i-- > 0; stride *= t.shape[i]) {
    if (t.shape[i] != 1 && t.strides[i] != stride) return false;
  }
  return true;
}

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

void require_host(const DLTensor& t) {
  if (!is_elsewhere(t)) return;
  throw nb::builtin_exception(nb::exception_type::buffer_error, kElsewhere);
}

std::pair<uintptr_t, uintptr_t> extent_of(const DLTensor& t) {
  int64_t below = 0, above = 1;  // elements from the first one on
  int64_t stride = 1;
  for (int32_t i = t.ndim; i-- > 0; stride *= t.shape[i]) {
    const int64_t reach = (t.shape[i] - 1) * (t.strides ? t.strides[i] : stride);
    (reach < 0 ? below : above) += reach;
  }
  const auto bytes = static_cast<int64_t>(bytes_of_element(t));
  const auto first = reinterpret_cast<uintptr_t>(data_of(t));
  return {first + static_cast<uintptr_t>(below * bytes),
          first + static_cast<uintptr_t>(above * bytes)};
}

Value read_only_tensor(const DLTensor& view, tenon_object* owner) {
  Value made;
  tenon_object_retain(owner);
  const auto release = [](void* object) {
    tenon_object_release(static_cast<tenon_object*>(object));
  };
  check(tenon_tensor_from_memory(&view, /*read_only=*/1, owner, release, made.out()));
  return made;
}

bool is_strings(DLDataType type) {
  return same(type, kStrings);
}

Value string_tensor(nb::handle array) {
  // A subclass may have other methods, whose results needn't fit each other.
  const nb::object plain = nb::module_::import_("numpy").attr("asarray")(array);
  // Nested in no list, whatever the rank; a str or bytes each, which the list keeps alive.
  const nb::object list = plain.attr("ravel")().attr("tolist")();
  std::vector<tenon_text> texts;
  for (nb::handle item : nb::cast<nb::list>(list)) {
    Py_ssize_t size = 0;
    if (PyUnicode_Check(item.ptr())) {
      const char* text = PyUnicode_AsUTF8AndSize(item.ptr(), &size);
      if (!text) throw nb::python_error();
      texts.push_back({text, static_cast<size_t>(size)});
    } else if (PyBytes_Check(item.ptr())) {
      texts.push_back(
          {PyBytes_AS_STRING(item.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(item.ptr()))});
    } else {
      const nb::object dtype = array.attr("dtype");
      throw nb::type_error(("Tenon has no tensors of dtype " +
                            string_of(nb::str(nb::handle(dtype))) +
                            " unless each element is a str, or bytes of UTF-8; this one holds " +
                            string_of(nb::repr(item)))
                               .c_str());
    }
  }
  std::vector<int64_t> shape;
  for (nb::handle size : nb::cast<nb::tuple>(plain.attr("shape")))
    shape.push_back(nb::cast<int64_t>(size));
  Value out;
  check(tenon_string_tensor_create(texts.data(), shape.data(), static_cast<int32_t>(shape.size()),
                                   out.out()));
  return out;
}

namespace {

nb::list new_list(size_t count) {
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(count)));
  if (!list.is_valid()) throw nb::python_error();
  return nb::borrow<nb::list>(list);
}

template <class T>
nb::list numbers_of(const DLTensor& t) {
  const size_t count = elements_of(t);
  const char* const from = static_cast<const char*>(data_of(t));
  nb::list list = new_list(count);
  for (size_t i = 0; i < count; ++i) {
    T number;  // a host's memory may be unaligned
    std::memcpy(&number, from + i * sizeof number, sizeof number);
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), nb::cast(number).release().ptr());
  }
  return list;
}

}  // namespace

nb::object number_list(const DLTensor& t) {
  if (t.dtype.lanes != 1) return {};
  if (t.dtype.code == kDLInt && t.dtype.bits == 64) return numbers_of<int64_t>(t);
  if (t.dtype.code == kDLFloat && t.dtype.bits == 32) return numbers_of<float>(t);
  if (t.dtype.code == kDLFloat && t.dtype.bits == 64) return numbers_of<double>(t);
  return {};
}

nb::list string_list(const Value& tensor) {
  const size_t count = elements_of(*tenon_tensor_view(tensor.get()));
  nb::list list = new_list(count);
  for (size_t i = 0; i < count; ++i) {
    const tenon_text text = tenon_string_tensor_element(tensor.get(), i);
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i),
                    str_of({text.data, text.size}).release().ptr());
  }
  return list;
}

nb::object sizes_of(const DLTensor& t) {
  nb::object out = new_tuple(static_cast<size_t>(t.ndim));
  for (int32_t i = 0; i < t.ndim; ++i)
    PyTuple_SET_ITEM(out.ptr(), i, nb::int_(t.shape[i]).release().ptr());
  return out;
}

nb::object string_array(const Value& tensor) {
  const DLTensor& t = *tenon_tensor_view(tensor.get());
  const size_t count = elements_of(t);
  const nb::list list = string_list(tensor);
  const nb::object shape = sizes_of(t);
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("empty")(count, nb::arg("dtype") = "object");
  if (count > 0) array.attr("__setitem__")(nb::slice(nb::none(), nb::none(), nb::none()), list);
  return array.attr("reshape")(shape);
}

void copy_elements(const DLTensor& t, char* to) {
  require_host(t);
  const size_t count = elements_of(t);
  if (count == 0) return;
  const char* const from = static_cast<const char*>(data_of(t));
  if (is_compact(t)) {
    std::memcpy(to, from, bytes_of(t));
    return;
  }
  const size_t element = bytes_of_element(t);
  const auto rank = static_cast<size_t>(t.ndim);
  std::vector<int64_t> at(rank, 0);
  for (size_t n = 0; n < count; ++n, to += element) {
    int64_t place = 0;
    for (size_t i = 0; i < rank; ++i) place += at[i] * t.strides[i];
    std::memcpy(to, from + place * static_cast<int64_t>(element), element);
    for (size_t i = rank; i-- > 0 && ++at[i] == t.shape[i];) at[i] = 0;
  }
}

}  // namespace tenon::python

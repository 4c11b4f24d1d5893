// The elements of tensors as Python sees them: dtypes under the names of NumPy and of the buffer
// protocol, and where the elements are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "python/src/value.h"

namespace tenon::python {

constexpr DLDataType dtype(int code, int bits) {
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
}

// A dtype that both sides have.
struct DtypeRow {
  const char* name;
  DLDataType dtype;
  const char* format;  // the buffer protocol's code, empty where it has none
  int numpy;           // NumPy's number; -1 for the dtypes of ml_dtypes
};

// The row of a dtype, or null.
const DtypeRow* row_of(DLDataType type);
const DtypeRow* row_of_numpy(int number);
const DtypeRow* row_of_ml_dtype(std::string_view name, int64_t bits);
const DtypeRow* row_of_format(std::string_view format);

// "float32", "bfloat16", "bool": the names of NumPy and ml_dtypes; the language's of another dtype.
std::string dtype_name(DLDataType type);

size_t elements_of(const DLTensor& t);
size_t bytes_of_element(const DLTensor& t);
size_t bytes_of(const DLTensor& t);
bool is_empty(const DLTensor& t);

// In row-major order without gaps. An empty tensor is, whatever its strides; they may have
// overflowed.
bool is_compact(const DLTensor& t);
// In column-major order without gaps.
bool is_column_major(const DLTensor& t);

inline constexpr char kElsewhere[] = "this tensor is on another device: copy it to the CPU first";
inline bool is_elsewhere(const DLTensor& t) {
  return t.device.device_type != kDLCPU;
}
// A BufferError unless the host can read the memory.
void require_host(const DLTensor& t);

inline void* data_of(const DLTensor& t) {
  return static_cast<char*>(t.data) + t.byte_offset;
}
// From the first byte of a tensor that isn't empty to behind its last, gaps included.
std::pair<uintptr_t, uintptr_t> extent_of(const DLTensor& t);

// A read-only tensor in memory that the object keeps alive.
Value read_only_tensor(const DLTensor& view, tenon_object* owner);

// The sizes, a tuple.
nb::object sizes_of(const DLTensor& t);

// The dtype of tensors of strings.
inline constexpr DLDataType kStrings = {kDLOpaqueHandle, 64, 1};
bool is_strings(DLDataType type);
// A tensor of strings with the elements of an array of NumPy: str, or bytes that are UTF-8. A
// TypeError for any other element.
Value string_tensor(nb::handle array);
// The elements of a tensor of strings as a NumPy array of objects, which are str.
nb::object string_array(const Value& tensor);
// The same as a list.
nb::list string_list(const Value& tensor);
// The elements of a compact tensor on the host as Python's numbers: what tolist() gives for rank 1,
// without an array in between. Invalid for other element types than i64, f32 and f64.
nb::object number_list(const DLTensor& t);

// Copies the elements in row-major order.
void copy_elements(const DLTensor& t, char* to);

}  // namespace tenon::python

// Checks for arguments of packed functions. Untrusted bytecode may call them, so arguments
// are checked before they are read. Errors name the function and the argument.
//
// A tensor without elements may have dimensions of any size at no cost, so functions handle it
// before they loop over dimensions. Functions poll while they work and allocate through the call
// (device/scratch.h, device/device.h).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "object/tensor.h"

namespace tenon::argument {

// Throws a Runtime error: "tenon.topk: what".
[[noreturn]] void fail(std::string_view function, const std::string& what);

// Requires that the tensor lies on the host, is compact, and isn't of strings.
void require_elements(std::string_view function, std::string_view name, const Tensor& t);
// The same, and that its elements are single numbers or booleans.
void require_host(std::string_view function, std::string_view name, const Tensor& t);
// The same for f32 or f64, and their elements, which may be unaligned.
void require_floats(std::string_view function, std::string_view name, const Tensor& t);
double float_at(const Tensor& t, int64_t i);
void set_float(const Tensor& t, int64_t i, double value);
// Elements of an i64 tensor, which may be unaligned.
int64_t integer_at(const Tensor& t, int64_t i);
void set_integer(const Tensor& t, int64_t i, int64_t value);
// The elements of a list i64[n] with at most kMaxRank elements; also checks it as require_host.
std::vector<int64_t> integers_of(std::string_view function, std::string_view name, const Tensor& t);
// A new tensor i64[n] of these numbers.
Tensor list_of(std::span<const int64_t> values);
// The axis as a number >= 0; throws if it is out of range.
int64_t axis_of(std::string_view function, int64_t axis, const Tensor& t);

// An integer key in the order of elements: equal elements have equal keys, NaN is the greatest and
// equal to itself, -0 equals 0. Of elements of up to four bytes, it has at most 32 bits. The dtype
// must have passed require_host.
uint64_t element_key(DataType dtype, const void* element);
// The keys of elements that are `stride` bytes apart.
void element_keys(DataType dtype, const void* first, int64_t stride, std::span<uint64_t> keys);
// For each of the elements from `first` on, whether it is neither 0 nor false. NaN counts as
// nonzero. The dtype must have passed require_elements.
void are_nonzero(DataType dtype, const void* first, std::span<uint8_t> found);

// A tensor with elements, seen as [outer, n, inner] where n is the size of an axis.
struct Slices {
  int64_t outer = 1, n = 1, inner = 1;
  Slices(const Tensor& x, int64_t axis);
};

}  // namespace tenon::argument

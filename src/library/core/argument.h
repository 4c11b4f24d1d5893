// Arguments of this library's functions: checked before anything is read, since bytecode of unknown
// origin may call them. Errors name the function and the argument.
//
// A tensor without elements may have dimensions of any size, which nobody paid for: functions deal
// with it before they loop over dimensions. What takes long polls; what takes memory takes it from
// the call (device/scratch.h, device/device.h).
#pragma once

#include <string_view>
#include <vector>

#include "device/device.h"
#include "object/tensor.h"

namespace tenon::core {

// Throws a Runtime error: "tenon.topk: what".
[[noreturn]] void fail(std::string_view function, const std::string& what);

// The tensor lies on the host, is compact and of a dtype with whole elements that are numbers or
// booleans.
void require_host(std::string_view function, std::string_view name, const Tensor& t);
// The same, of i64 and rank 1 with at most kMaxRank elements: a number per axis.
std::vector<int64_t> integers_of(std::string_view function, std::string_view name, const Tensor& t);
// A new tensor i64[n] of these numbers.
Tensor list_of(std::span<const int64_t> values);
// The axis made >= 0; fails when it is outside of the rank.
int64_t axis_of(std::string_view function, int64_t axis, const Tensor& t);

// A number that orders as the element does: keys of equal elements are equal, NaN is the greatest
// and equal to itself, -0 equals 0. The dtype must have passed require_host.
uint64_t element_key(DataType dtype, const void* element);
// Whether an element is neither 0 nor false. NaN is not 0.
bool is_nonzero(DataType dtype, const void* element);

// x, which has elements, seen as [outer, n, inner], n being an axis.
struct Slices {
  int64_t outer = 1, n = 1, inner = 1;
  Slices(const Tensor& x, int64_t axis);
};

}  // namespace tenon::core

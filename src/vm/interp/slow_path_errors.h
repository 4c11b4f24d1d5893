// The errors of the slow path's instructions. They stand apart since they are compiled for size.
#pragma once

#include "object/tensor.h"
#include "vm/interp/dispatch.h"

namespace tenon::vm::slow_path {

// A value isn't what an instruction needs, such as "an integer". `what` is its purpose.
[[noreturn, gnu::cold]] void fail_type(const char* wanted, const char* what, const AnyView& found);
[[noreturn, gnu::cold]] void fail_no_cell(const char* message, const AnyView& found);
[[noreturn, gnu::cold]] void fail_no_shape(const char* what, const AnyView& found);
// An index into `size` fields or elements, and an axis of a value of that rank.
[[noreturn, gnu::cold]] void fail_index(int64_t index, int64_t size);
[[noreturn, gnu::cold]] void fail_axis(const AnyView& axis, size_t rank);
// Sizes of storages and tensors.
[[noreturn, gnu::cold]] void fail_negative(const char* what, size_t axis, int64_t found);
[[noreturn, gnu::cold]] void fail_storage_size(int64_t size);
[[noreturn, gnu::cold]] void fail_offset(int64_t offset);
// Elements of tensors.
[[noreturn, gnu::cold]] void fail_element_count(size_t wanted, const Tensor& found);
[[noreturn, gnu::cold]] void fail_element_type(DataType dtype);
[[noreturn, gnu::cold]] void fail_element(DataType dtype, const AnyView& found);

// The operand that a match compares, in the same place for each of these instructions.
inline const ValueRef& matched(const Op& op) {
  constexpr uint32_t kPlace = value_operand(Opcode::MatchShape, "value");
  static_assert(kPlace == value_operand(Opcode::MatchTensor, "value") &&
                kPlace == value_operand(Opcode::MatchDtype, "value") &&
                kPlace == value_operand(Opcode::MatchPrimValue, "value"));
  return op.operands->args[kPlace];
}

// A match fails. These name the input, or the packed function whose result it is, and the sizes
// that it declares. `value` is the operand, or a copy of it.
// `number` is the rank or the axis in which they differ.
enum class Difference : uint8_t { Kind, Rank, Axis };
[[noreturn, gnu::cold]] void shape_mismatch(Machine& m, const Op& op, const AnyView* base,
                                            const AnyView& value, Difference in, size_t number);
[[noreturn, gnu::cold]] void number_mismatch(Machine& m, const Op& op, const AnyView* base,
                                             const AnyView& value);
[[noreturn, gnu::cold]] void dtype_mismatch(Machine& m, const Op& op, const AnyView& value);

}  // namespace tenon::vm::slow_path

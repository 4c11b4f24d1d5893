// Constants in assembly: values that read back to the same bytes.
//
//   42   true   float 0.5   float bits 0x7ff8000000000001   "text"   dtype f32   device cpu:0
//   shape[2, 3]   tensor[2; i64] {1, 2}   tensor[1; f32] hex "0000803f"   tensor[9; f32] elided
//   late tensor[2; f32]   late tensor[2; f32] align 32
#pragma once

#include <string>
#include <string_view>

#include "object/any.h"
#include "vm/asm/line_cursor.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

// Tensors with more than `max_elements` elements are printed as `elided`, which the assembler
// refuses.
std::string constant_text(const AnyView& value, int64_t max_elements);
Any parse_constant(LineCursor& in);
// The text after `late`: a tensor that is bound when the program is loaded.
std::string late_tensor_text(const LateTensor& late);
LateTensor parse_late_tensor(LineCursor& in);

std::string hex_bytes(std::string_view bytes);

// Operands that assembly writes out.
std::string dtype_operand_text(DataType t);
DataType parse_dtype_operand(LineCursor& in);
DLDevice parse_device_operand(LineCursor& in);

}  // namespace tenon::vm

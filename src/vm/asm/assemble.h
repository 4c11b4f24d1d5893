// The assembler: text of the machine's programs to a Unit. One statement per line, ";" starts a
// comment.
//
//   producer "tenon 0.1.0"
//   library "onednn"                        ; a library that the program needs
//   span "fib.tn" 12 3 "node"               ; a source span; numbered from 0
//   const "weight" = tensor[2; i64] {1, 2}  ; a constant, numbered from 0; the name may be missing
//   packed $"host.print"                    ; a registered function
//   kernel $fused_add                       ; a kernel of the kernel object
//   object "x86_64-linux-gnu" "skylake" {"avx2", "fma"} hex "7f454c46..."
//
//   func @fib(n: i64) -> i64 {              ; `local func` isn't callable by the host
//     registers 4                           ; default: as many as the code names
//     results "y"                           ; names of the results
//     at 0                                  ; from here on source span 0; numbers only ascend in
//     code %1 = lt %0, 2 if %1, L1 ret %0
//   L1:
//     ...
//   }
//
// Operands are written as opcodes.def shows them. A first operand of kind `def` stands before "=".
// Functions, packed functions and constants may be named by number (@0, $1, #2), functions and
// packed functions by name. A label is any name; `L+12` is the word offset 12 itself, and `.word
// 0x...` a word of code itself: so a damaged program can be written too. The assembler checks what
// it must to encode; whether the program is sound is the verifier's to say.
#pragma once

#include <string_view>

#include "vm/isa/unit.h"

namespace tenon::vm {

// `name` is the file's name in errors. Throws a Usage error at the first line that is wrong.
Unit assemble(std::string_view text, std::string_view name = "<text>");

// Whether the first line that says anything is a statement of assembly.
bool begins_like_assembly(std::string_view text);

}  // namespace tenon::vm

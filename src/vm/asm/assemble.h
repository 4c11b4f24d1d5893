// The assembler: reads a program's text into a Unit. One statement per line; ";" starts a comment.
//
//   producer "tenon 0.1.0"
//   library "onednn"                        ; a library that the program needs
//   span "fib.tn" 12 3 "node"               ; a source span; numbered from 0
//   const "weight" = tensor[2; i64] {1, 2}  ; a constant, numbered from 0; the name is optional
//   packed $"host.print"                    ; a registered function
//   kernel $fused_add                       ; a kernel of the kernel object
//   object "x86_64-linux-gnu" "skylake" {"avx2", "fma"} hex "7f454c46..."
//
//   func @fib(n: i64) -> i64 {              ; `local func` isn't callable by the host
//     registers 4                           ; default: as many as the code names
//     results "y"                           ; names of the results
//     at 0                                  ; from here on, instructions come from source span 0
//     %1 = lt %0, 2
//     if %1, L1
//     ret %0
//   L1:
//     ...
//   }
//
// Operands are written as in opcodes.def. A first operand of kind `def` is written before "=".
// Functions and packed functions may be referred to by number (@0, $1) or name, constants by number
// (#2). A label is any name; `L+12` is word offset 12, and `.word 0x...` is a word of code, so that
// damaged programs can be written too. The assembler checks only what it needs for encoding;
// soundness is up to the verifier.
#pragma once

#include <string_view>

#include "vm/isa/unit.h"

namespace tenon::vm {

// `name` is the file's name in errors. Throws a Usage error for the first wrong line.
Unit assemble(std::string_view text, std::string_view name = "<text>");

// Whether the first line that isn't empty or a comment is an assembly statement.
bool begins_like_assembly(std::string_view text);

}  // namespace tenon::vm

#!/bin/sh
# check_32_bit_layouts.sh C_COMPILER CXX_COMPILER: compiles the layout assertions for 32-bit
# pointers, with 64-bit integers aligned to 8 bytes, as on WebAssembly and most processors. Run
# from the root of the tree. Exits with 77 if the compilers don't support that target.
set -e
flags="-m32 -malign-double -fsyntax-only -Isrc -Iinclude"
printf '#include <stdint.h>\n#include <string>\n' | $2 $flags -x c++ - 2>/dev/null || {
  echo "no compiler for 32 bits (g++-multilib)"
  exit 77
}
$2 -std=c++20 $flags src/object/abi_layout.cc
echo '#include "c_api/layout_asserts.h"' | $1 -std=c11 $flags -x c -
printf '#include "c_api/layout_asserts.h"\n#include "vm/executable/kernel_abi.h"\n' | $2 -std=c++20 $flags -x c++ -

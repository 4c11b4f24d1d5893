#!/bin/sh
# check_32_bit_layouts.sh C_COMPILER CXX_COMPILER: compiles what asserts the layouts for pointers of 32 bits,
# with integers of 64 bits aligned to 8 bytes as WebAssembly and most processors have them. Run in the root of
# the tree. Exits with 77 where the compilers can't.
set -e
flags="-m32 -malign-double -fsyntax-only -Isrc -Iinclude"
printf '#include <stdint.h>\n#include <string>\n' | $2 $flags -x c++ - 2>/dev/null || {
  echo "no compiler for 32 bits (g++-multilib)"
  exit 77
}
$2 -std=c++20 $flags src/object/abi_layout.cc
echo '#include "c_api/layout_asserts.h"' | $1 -std=c11 $flags -x c -
printf '#include "c_api/layout_asserts.h"\n#include "vm/executable/kernel_abi.h"\n' | $2 -std=c++20 $flags -x c++ -

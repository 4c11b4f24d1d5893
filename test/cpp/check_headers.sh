#!/usr/bin/env bash
# check_headers.sh INCLUDE COMPILER: compiles every C++ header of INCLUDE/tenon alone with COMPILER, and
# all of them with it and with clang, if that is installed, as C++20 without RTTI and as C++23 (2b, as older compilers call it).
# As C++17, each ends with the error that names C++20, and no other but the missing file that stops the compiler.
set -euo pipefail
include=$1
compilers=("$2")
clang=$(command -v clang++-19 || command -v clang++ || true)
[ -z "$clang" ] || compilers+=("$clang")
flags=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Werror -fsyntax-only
  -x c++ -include)
for header in "$include"/tenon/cpp/*.h; do
  "$2" -std=c++20 "-I$include" "${flags[@]}" "$header" /dev/null
done
for compiler in "${compilers[@]}"; do
  "$compiler" -std=c++20 -fno-rtti "-I$include" "${flags[@]}" "$include/tenon/tenon.h" /dev/null
  "$compiler" -std=c++2b "-I$include" "${flags[@]}" "$include/tenon/tenon.h" /dev/null
done
for header in "$include"/tenon/tenon.h "$include"/tenon/cpp/{value,error,function,program,compiler,standard}.h; do
  for compiler in "${compilers[@]}"; do
    out=$("$compiler" -std=c++17 "-I$include" -fsyntax-only -x c++ -include "$header" /dev/null 2>&1) && exit 1
    errors=$(grep -E 'error: ' <<< "$out")
    if ! head -1 <<< "$errors" | grep -q 'needs C++20: add -std=c++20' || [ "$(wc -l <<< "$errors")" != 2 ]; then
      printf '%s as C++17 with %s:\n%s\n' "$header" "$compiler" "$out" >&2
      exit 1
    fi
  done
done

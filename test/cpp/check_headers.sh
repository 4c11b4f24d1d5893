#!/usr/bin/env bash
# check_headers.sh INCLUDE COMPILER: compiles every C++ header of INCLUDE/tenon alone with COMPILER, and
# all of them with it and with clang, if that is installed, as C++20 without RTTI and as C++23 (2b, as older compilers call it).
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

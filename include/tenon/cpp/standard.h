/// Ends compilation where the language is older than the interface needs, before anything else here
/// is read: the compiler would otherwise report thousands of errors in templates.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "tenon/tenon.h needs C++20: add -std=c++20; older C++ can use tenon/c_api.h"
// Compilers go on after #error, but not without a file.
#include <a compiler of C++20>
#endif

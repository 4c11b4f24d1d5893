// The translation of a kernel into LLVM IR functions: declarations shared by all its files.
//
// clang-format off
//   emit.cc        from kernels to a linked object: object files, table; passes: LLVM's
//   module_writer  an LLVM module under construction: functions, constants, calls of the runtime
//   entry.cc       the packed entry, which checks every argument; refuse.cc reports what was wrong
//   code_size      refuses kernels that need too much code
//   stack_use      refuses kernels that need too much native stack
//   nesting.cc     refuses kernels that are nested too deeply
//   body.cc        the body, composed of
//     function       the LLVM function: entry and exit, values in scope (Env), sizes, errors
//     facts          facts about expressions, known before they are emitted
//     statement      loops, choices, variables, stores; parallel.cc turns parallel loops into tasks,
//                    matrix.cc those over matrices of bytes into a product in AMX's registers
//     interrupt      lets loops be stopped
//     scratch        storage that statements allocate
//     expression     scalar expressions, for one element or one vector of lanes
//     operator       their operators, on evaluated operands; quantised.cc those of quantised numbers
//     memory         loads and stores; element: dtypes in registers and memory; alias: alias scopes
//     work           estimates how much work a loop is
//   size           sizes: expressions of symbols
//   abi.h          LLVM's types for those of the kernel ABI
//   math*.cc       the mathematical functions; numeric.h: LLVM values with C++ operators
// clang-format on
//
// A body is `i32 (runtime*, buffer pointers..., symbols as i64...)`: it returns 0 or what raise
// returned. Private to this folder: it exposes LLVM types.
#pragma once

#include <string>

#include "codegen/llvm/code_size.h"
#include "codegen/llvm/module_writer.h"
#include "loop/kernel.h"

namespace tenon::codegen {

// Throws an Unsupported error for a kernel with expressions too deep for the native stack, since
// the translation recurses over them. A variable has the depth of the value that its `let` binds,
// since facts about it are derived from that value.
void check_nesting(const loop::Kernel& kernel);

// Writes the entry `i32 NAME(void* runtime, const Any* args, i32 n, Any* result)` for a body.
llvm::Function* write_entry(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* body,
                            CodeSize& size);
void write_checks(ModuleWriter& m);  // the bodies of check and refuse
// The base name of the kernel's functions. LLVM reserves names that begin with "llvm.".
std::string symbol_of(const loop::Kernel& kernel);
llvm::Function* write_body(ModuleWriter& m, const loop::Kernel& kernel, CodeSize& size);

}  // namespace tenon::codegen

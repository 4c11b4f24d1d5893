// Compiles kernels of loop IR to machine code: the only way from loop/kernel.h to runnable code.
// Ahead-of-time compilation, folding, `run` on a model and tests all use it, and differ only in
// where they put the bytes.
//
//   loop IR -> LLVM IR -> object file -> closed shared object (vm/executable/kernel_abi.h)
//
// The bytes depend only on the kernels, the target and the options. An entry checks its arguments
// (entry.cc); bodies rely on these checks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/llvm/target.h"
#include "loop/kernel.h"
#include "vm/isa/unit.h"

namespace tenon::codegen {

enum class Optimisation : uint8_t {
  kLoops,  // the passes that scheduled loops benefit from
  kAll,    // LLVM's own -O2, which takes twice as long and which `tenon` uses above -O0
};

struct EmitOptions {
  Optimisation optimisation = Optimisation::kLoops;
  // If not null, the kernels' LLVM IR and assembly are appended as text. Tests and benchmarks read
  // it.
  std::string* ir_text = nullptr;
  std::string* assembly_text = nullptr;
  // Zeroes scratch on the stack before a kernel uses it, for kernels from untrusted sources. (The
  // runtime's workspace is zero if the machine is untrusted.)
  bool clear_scratch = false;
  // Bytecode that calls the kernels, if it is to be compiled, too (vm/executable/code_abi.h).
  const vm::Unit* bytecode = nullptr;
  // Makes what vm::write_shared puts the program into: an object that exports a ModelTable
  // (vm/executable/model_abi.h) instead of the tables of kernels and of compiled bytecode.
  bool shared = false;
  // The number of threads for compiling many kernels. Doesn't change the bytes.
  int threads = 1;
};

// Whether bytecode can be compiled for that architecture, and is worth it: it has a loop, a call or
// a match, at most 2000 instructions and 200 calls, and frames of at most 128 registers.
bool can_compile_bytecode(const vm::Unit& unit, const Target& target);

// A kernel object with one entry per kernel, named like the kernel; names must differ. Errors:
// Unsupported for a dtype without code generation; Internal for invalid IR or a bug. A thread with
// any stack may call it (compile_stack.h).
std::vector<uint8_t> compile_kernels(const Array<loop::KernelRef>& kernels, const Target& target,
                                     const EmitOptions& options = {});

}  // namespace tenon::codegen

// Compiles kernels of loop IR to machine code: the one way from loop/kernel.h to something that
// runs. Ahead-of-time compilation, folding, `run` on a model and tests all take it; they differ in
// where they put the bytes.
//
//   loop IR -> LLVM IR -> object file -> closed shared object (vm/executable/kernel_abi.h)
//
// The bytes depend on the kernels, the target and the options alone. An entry checks its arguments
// (entry.cc); bodies assume what was checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/llvm/target.h"
#include "loop/kernel.h"

namespace tenon::codegen {

struct EmitOptions {
  // 0: quickest to compile; 1: all passes that scheduled loops gain from; 2: LLVM's own -O2, which
  // takes twice as long and is what `tenon` compiles with above -O0.
  int optimisation = 1;
  // Where the module's LLVM IR and assembly are appended as text, when not null: for `--dump`.
  std::string* ir_text = nullptr;
  std::string* assembly_text = nullptr;
  // Scratch memory on the stack is zero before a kernel uses it, for kernels that anybody may have
  // written. Workspace of the runtime is zero where the machine is untrusted.
  bool clear_scratch = false;
  // Threads to compile a large set of kernels with. The bytes are the same for every number.
  int threads = 1;
};

// A kernel object with one entry per kernel, named as the kernel; names must differ. Throws Error:
// Unsupported for a dtype without code; Internal for IR that breaks its rules, or our bug.
std::vector<uint8_t> compile_kernels(const Array<loop::KernelRef>& kernels, const Target& target,
                                     const EmitOptions& options = {});

}  // namespace tenon::codegen

// A Unit: a whole program of the machine in memory, the same content as a .tnx file. The assembler
// and the compiler's emitter build one; vm/executable saves and loads it; the disassembler prints
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "object/any.h"
#include "support/error.h"
#include "vm/isa/instruction.h"
#include "vm/isa/signature.h"

namespace tenon::vm {

struct Param {
  std::string name;
  SignatureType type;
  // The callee doesn't keep it: a caller need not own it for the call.
  bool borrowed = false;
};

// From code word `offset` on, up to the next one, instructions come from spans[span] of the unit.
struct CodeSpan {
  uint32_t offset = 0;
  uint32_t span = 0;
  bool operator==(const CodeSpan&) const = default;
};

struct FunctionUnit {
  std::string name;
  // May the host call it? Names of others are for people only.
  bool exported = true;
  std::vector<Param> params;  // arrive in registers 0, 1, ...
  SignatureType result;
  std::vector<std::string>
      result_names;             // of the result, or of each field of a tuple; may be empty
  uint32_t register_count = 0;  // the frame's size
  std::vector<Word> code;
  std::vector<CodeSpan> spans;  // offsets ascending
};

// A Tensor (compact, on the CPU), Shape, string, integer, float, boolean, dtype or device. Tensor
// memory is borrowed through the value: nothing is copied until the file is written.
struct Constant {
  std::string name;  // for people; may be empty
  Any value;
};

// A function that isn't bytecode: what call_packed names.
struct PackedName {
  std::string name;
  // In a kernel object of this file; otherwise a function registered with the host or found in one
  // of the libraries.
  bool kernel = false;
  bool operator==(const PackedName&) const = default;
};

// Native code for one target: a closed ELF shared object (vm/executable/kernel_abi.h).
struct KernelObjectUnit {
  std::string target;                     // LLVM triple
  std::string cpu;                        // what it was compiled for, for people
  std::vector<std::string> cpu_features;  // needed, by the names in cpu_features.def
  std::string elf;                        // the object's bytes
};

struct Unit {
  std::vector<FunctionUnit> functions;
  std::vector<Constant> constants;
  std::vector<PackedName> packed;
  std::vector<KernelObjectUnit> kernels;
  std::vector<Span> spans;
  std::vector<std::string> libraries;  // needed, by name: "onednn"
  std::string producer;                // "tenon 0.1.0", for people

  // Index of the function of that name, or -1.
  int64_t find_function(std::string_view name) const;
  // Index of the packed function, added when it isn't there yet.
  uint32_t packed_index(std::string_view name, bool kernel);
  uint32_t add_constant(Any value, std::string name = "");
  // Index of the span, sharing the last one when equal.
  uint32_t add_span(const Span& span);
};

}  // namespace tenon::vm

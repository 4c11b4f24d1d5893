// The contract between a shared object that holds a program and the runtime: plain C layouts, no
// names to link.
//
// `tenon compile --shared` writes a closed ELF shared object: it imports nothing, needs no library,
// has no constructors. Its only exported symbol is `tenon_model`, a ModelTable:
//
//     ELF header, program headers
//     read-only data: the ModelTable, ...
//     code and data of a kernel object (kernel_abi.h, code_abi.h)
//     section headers
//     the .tnx file without native code: from a page's start, in a segment of its own
//
// The table holds distances from its own address, so that no relocation changes it and a reader
// finds the .tnx file without opening the object.
//
// A change of any layout raises kModelAbiVersion; members are only added at the end.
#pragma once

#include <cstdint>

namespace tenon::vm {

inline constexpr uint32_t kModelAbiVersion = 1;
inline constexpr char kModelTableSymbol[] = "tenon_model";

// The section of the .tnx file. Before the file is there, it is a note.
inline constexpr char kModelSection[] = ".note.tenon_model";

struct ModelTable {
  uint32_t abi_version;
  uint32_t size;        // sizeof(ModelTable) of the compiler
  int64_t file;         // of the .tnx file's first byte
  uint64_t file_bytes;  // the file's size
  int64_t kernels;      // of the KernelTable
  int64_t code;         // of the CodeTable; 0 if there is no compiled bytecode
};
static_assert(sizeof(ModelTable) == 40);

}  // namespace tenon::vm

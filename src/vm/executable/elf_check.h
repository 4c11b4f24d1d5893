// Checks that an ELF shared object is closed: it imports nothing, needs no library, and runs
// nothing when opened; and that the tables of native code in it (kernel_abi.h, code_abi.h) are
// whole: each pointer that the machine follows leads to where it should. Native code must pass
// before the dynamic loader sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vm/executable/model_abi.h"

namespace tenon::vm {

// The addresses that an object may have, from 0.
inline constexpr uint64_t kMostElfMemory = uint64_t{1} << 32;

// What is expected of an object, for errors.
inline constexpr char kClosedObject[] =
    "a shared object that is whole, imports nothing and runs nothing when opened";

// What an object has of a program (model_abi.h).
struct ElfModel {
  const char* place = nullptr;  // of its ModelTable, among the bytes; null if it exports none
  ModelTable table{};           // zero if it exports none
  std::string_view file;        // the .tnx file; empty if that isn't in read-only memory, aligned
  // The object's own addresses of its KernelTable and CodeTable; 0 if it has none.
  uint64_t kernels = 0, code = 0;
};

// Returns nullopt for a closed object, otherwise what it has that a kernel object must not have.
// Tables of another ABI version are for whoever opens it to refuse.
// Reads only within `bytes`, whatever they are. Fills in `model` for a closed object.
std::optional<std::string> why_not_closed(std::string_view bytes, ElfModel* model = nullptr);

}  // namespace tenon::vm

// Checks that an ELF shared object is closed: it imports nothing, needs no library, and runs
// nothing when opened. Native code must be closed before the dynamic loader sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vm/executable/model_abi.h"

namespace tenon::vm {

// The addresses that an object may have, from 0.
inline constexpr uint64_t kMostElfMemory = uint64_t{1} << 32;

// What an object has of a program (model_abi.h).
struct ElfModel {
  const char* place = nullptr;  // of its ModelTable, among the bytes; null if it exports none
  ModelTable table{};           // zero if it exports none
  std::string_view file;        // the .tnx file; empty if that isn't in read-only memory, aligned
};

// Returns nullopt for a closed object, otherwise what it has that a kernel object must not have.
// Reads only within `bytes`, whatever they are. Fills in `model` for a closed object.
std::optional<std::string> why_not_closed(std::string_view bytes, ElfModel* model = nullptr);

}  // namespace tenon::vm

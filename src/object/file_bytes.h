// A file's bytes in memory.
#pragma once

#include <cstddef>
#include <string_view>

#include "object/object.h"

namespace tenon {

// Read-only bytes at a 64-byte aligned address, freed with the object.
struct FileBytes : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::VmFileBytes;
  static constexpr int32_t kTypeLast = kTypeIndex;

  const char* data = nullptr;
  size_t size = 0;
  enum class Memory : uint8_t { Mapped, Allocated } memory = Memory::Allocated;
  int descriptor = -1;  // of a mapped ELF file, for the dynamic loader

  FileBytes() = default;
  FileBytes(const FileBytes&) = delete;
  ~FileBytes();
  std::string_view view() const { return {data, size}; }
};

}  // namespace tenon

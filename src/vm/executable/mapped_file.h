// A file's bytes in memory.
#pragma once

#include <string>
#include <string_view>

#include "object/object.h"

namespace tenon::vm {

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

// Maps the file. Truncating it while the bytes are in use ends the process (SIGBUS). Usage errors
// name the path and the system's reason.
Ref<FileBytes> map_file(const std::string& path);
// Reads the file into memory, so that later writes to it have no effect. The size counts for the
// memory of this thread's work (device/call_context.h), and reading is polled.
Ref<FileBytes> read_whole_file(const std::string& path);
// A copy, whose making is polled.
Ref<FileBytes> copy_bytes(std::string_view bytes);

}  // namespace tenon::vm

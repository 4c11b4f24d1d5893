// A file's bytes in memory, for as long as anybody holds them.
#pragma once

#include <string>
#include <string_view>

#include "object/object.h"
#include "vm/executable/load_limits.h"

namespace tenon::vm {

// Bytes at a 64-byte aligned address, read-only, that die with the object.
struct FileBytes : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::VmBegin + 0;
  static constexpr int32_t kTypeLast = kTypeIndex;

  const char* data = nullptr;
  size_t size = 0;
  enum class Memory : uint8_t { Mapped, Allocated, Borrowed } memory = Memory::Borrowed;
  Ref<Object> owner;  // of borrowed bytes

  FileBytes() = default;
  FileBytes(const FileBytes&) = delete;
  ~FileBytes();
  std::string_view view() const { return {data, size}; }
};

// Maps the file: it may not become shorter while the bytes are in use, or reading them ends the
// process (SIGBUS). Usage errors name the path and the system's reason.
Ref<FileBytes> map_file(const std::string& path);
// Reads the file into memory, so that whoever can write it can't change or end anything later. The
// size counts on `budget` before it is allocated, and reading is polled, where there is one.
Ref<FileBytes> read_whole_file(const std::string& path, LoadBudget* budget = nullptr);
// A copy.
Ref<FileBytes> copy_bytes(std::string_view bytes);
// The bytes themselves, which `owner` keeps alive; copied when they aren't aligned to 64.
Ref<FileBytes> borrow_bytes(std::string_view bytes, Ref<Object> owner);

}  // namespace tenon::vm

// A file's bytes in memory.
#pragma once

#include <cstddef>
#include <string_view>

#include "object/object.h"
#include "object/tensor.h"

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
  // Takes the pages of a mapped file from the process's memory, until they are read again.
  void release_pages() const;
};

// The following take a tensor that is Tenon's own (TensorObj::is_ours).

// The mapped file that has the tensor's elements; null if they are elsewhere.
const FileBytes* mapped_file_of(const Tensor& tensor);
// The elements are read soon: maps their pages in one step if they are in a mapped file.
void map_pages(const Tensor& tensor);
// They were read for the last time, probably: takes their pages from the process's memory if they
// are in a mapped file. Leaves pages at either end that hold other bytes, too.
void release_pages(const Tensor& tensor);

}  // namespace tenon

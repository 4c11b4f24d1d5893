// The layout of a .tnx file. All numbers are little-endian; sections start at multiples of 64.
//
//     0  magic, 8 bytes
//     8  uint32 format version
//    12  uint32 number of sections: kSectionCount
//    16  uint64 size of the file
//    24  uint64 hash of bytes 32 to the end of the section table, seeded with the 24 before it
//    32  section table, 32 bytes per section, in the order of SectionId:
//            uint64 offset, uint64 size, uint64 hashed (leading bytes that the hash covers),
//            uint64 hash
//        ...sections, in the same order, zeros between
//
//    globals     flatbuffer Globals
//    constants   directory + data; only the directory is hashed
//    primitives  flatbuffer Primitives
//    code        64-bit words
//    kernels     directory + data
//    debug       flatbuffer Debug
//
// A directory is a uint64 with the byte size of the flatbuffer that follows; data blocks start at
// multiples of 64. Hashes are XXH64 (hash.h). A section may be empty when it says nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tenon::vm {

inline constexpr unsigned char kMagic[8] = {0x89, 'T', 'N', 'X', '\r', '\n', 0x1a, '\n'};

enum class SectionId : uint32_t { Globals, Constants, Primitives, Code, Kernels, Debug };
inline constexpr uint32_t kSectionCount = 6;
inline constexpr std::string_view kSectionNames[kSectionCount] = {
    "globals", "constants", "primitives", "code", "kernels", "debug"};

struct SectionEntry {
  uint64_t offset;
  uint64_t size;
  uint64_t hashed;
  uint64_t hash;
};

struct FileHeader {
  unsigned char magic[8];
  uint32_t version;
  uint32_t section_count;
  uint64_t file_size;
  uint64_t hash;
  SectionEntry sections[kSectionCount];
};
static_assert(sizeof(FileHeader) == 32 + 32 * kSectionCount);

inline constexpr uint64_t kFileAlignment = 64;
constexpr uint64_t align_up(uint64_t n) {
  return (n + kFileAlignment - 1) & ~(kFileAlignment - 1);
}

}  // namespace tenon::vm

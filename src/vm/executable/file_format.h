// The layout of a .tnx file. All numbers are little-endian; sections start at multiples of 64.
//
//     0  magic, 8 bytes
//     8  uint32 format version
//    12  uint32 number of sections
//    16  uint64 size of the file
//    24  uint64 hash of the section table, seeded with the hash of the 24 bytes before it
//    32  section table, 48 bytes per section:
//            4 bytes tag        of sections.def, or an unknown one
//            uint32 flags       bit 0: a reader that doesn't know the tag must refuse the file
//            uint64 offset      ascending
//            uint64 size
//            uint64 checked     leading bytes whose hash every reader checks
//            uint64 hash        of those
//            uint64 data_hash   of the rest, which `tenon verify` checks; 0 if there is none
//        ...sections, in the same order, zeros between
//
// sections.def lists the sections. Hashes are XXH64 (hash.h). Empty sections are omitted.
//
// Format 1 had exactly the sections of that format, in their order, without tags: its table has 32
// bytes per section: uint64 offset, size, checked, hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "vm/executable/model_abi.h"

namespace tenon::vm {

inline constexpr unsigned char kMagic[8] = {0x89, 'T', 'N', 'X', '\r', '\n', 0x1a, '\n'};

constexpr bool begins_like_elf(std::string_view bytes) {
  return bytes.starts_with("\177ELF");
}

// Whether the bytes are meant to be an executable. Of a .tnx file, checks only the name in the
// magic, so that it also recognises files whose line ends were changed by a transfer as text; of a
// shared object, the name of its symbol, which stands near the beginning.
constexpr bool begins_like_executable(std::string_view bytes) {
  constexpr size_t kHead = 4096;
  if (begins_like_elf(bytes)) return bytes.substr(0, kHead).find(kModelTableSymbol) < kHead;
  return bytes.size() >= 4 && bytes.substr(1, 3) == "TNX";
}

enum class SectionId : uint32_t {
#define TENON_SECTION(identifier, ...) identifier,
#include "vm/executable/sections.def"
#undef TENON_SECTION
};

enum class SectionContent : uint8_t { Whole, Directory, DirectoryAlone };

struct SectionInfo {
  std::string_view tag, name;
  bool required;
  uint32_t since;  // the first version of the format that has it
  SectionContent content;

  constexpr bool checked_whole() const { return content != SectionContent::DirectoryAlone; }
};
// By SectionId.
inline constexpr SectionInfo kSections[] = {
#define TENON_SECTION(identifier, tag, name, required, format, content, holds) \
  {tag, name, required, format, SectionContent::content},
#include "vm/executable/sections.def"
#undef TENON_SECTION
};
constexpr const SectionInfo& section_info(SectionId id) {
  return kSections[static_cast<uint32_t>(id)];
}
inline constexpr uint32_t kSectionRequired = 1;  // bit of the flags
constexpr uint32_t count_format_1_sections() {
  uint32_t count = 0;
  for (const SectionInfo& info : kSections) count += info.since == 1;
  return count;
}
inline constexpr uint32_t kFormat1Sections = count_format_1_sections();

struct FileHeader {
  unsigned char magic[8];
  uint32_t version;
  uint32_t section_count;
  uint64_t file_size;
  uint64_t hash;
};
static_assert(sizeof(FileHeader) == 32);

struct SectionEntry {
  char tag[4];
  uint32_t flags;
  uint64_t offset;
  uint64_t size;
  uint64_t checked;
  uint64_t hash;
  uint64_t data_hash;
  std::string_view tag_text() const { return {tag, sizeof tag}; }
};
static_assert(sizeof(SectionEntry) == 48);

struct SectionEntry1 {  // of format 1
  uint64_t offset;
  uint64_t size;
  uint64_t checked;
  uint64_t hash;
};
static_assert(sizeof(SectionEntry1) == 32);

inline constexpr uint64_t kFileAlignment = 64;

// What to do about bytes that can't be what a writer wrote.
inline constexpr char kDamagedHelp[] = "compile it again, or compare checksums with its sender";

// `alignment` is a power of two.
constexpr uint64_t align_up(uint64_t n, uint64_t alignment = kFileAlignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

}  // namespace tenon::vm

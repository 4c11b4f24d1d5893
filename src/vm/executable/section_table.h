// A file's header and section table, of every format version (file_format.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vm/executable/file_format.h"
#include "vm/executable/load_limits.h"

namespace tenon::vm {

struct SectionTable {
  uint32_t version = 0;
  std::vector<SectionEntry> entries;  // in the file's order; those of format 1 have tags too

  // Null when the file has none.
  const SectionEntry* find(SectionId id) const;
};

// "constants", or the tag in quotes of a section that this build doesn't know.
std::string section_name(const SectionEntry& entry);

// Reads and checks the table: places, and the hashes of what readers read unless `check_hashes` is
// false. Damaged errors, and Unsupported ones for a later format and for a required section that
// this build doesn't know. `name` is the file's, in errors.
SectionTable read_section_table(std::string_view file, const std::string& name, bool check_hashes,
                                LoadBudget* budget = nullptr);

// Checks the hashes of data that reading a file leaves alone, such as weights. Damaged errors.
// False when the file has such data and, being of format 1, no hash of it.
bool check_data_hashes(std::string_view file, const SectionTable& table, const std::string& name);

// The error for bytes that don't fit together.
[[noreturn]] void throw_damaged(std::string_view name, std::string_view where,
                                std::string_view found, std::string_view expected);

// Sets every hash, and the file's size, to what the bytes give: for tests and fuzzers. False when
// the bytes have no whole section table.
bool repair_hashes(std::string& file);

}  // namespace tenon::vm

// A file's header and section table, of every format version (file_format.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vm/executable/file_format.h"

namespace tenon::vm {

struct SectionTable {
  uint32_t version = 0;
  std::vector<SectionEntry> entries;  // in the file's order; format 1's get tags too

  // Null if the file has none.
  const SectionEntry* find(SectionId id) const;
};

// The hash that a header holds: of the header's bytes before it and of the section table.
uint64_t table_hash(const FileHeader& header, std::string_view table);

// "constants", or an unknown section's tag in quotes.
std::string section_name(const SectionEntry& entry);

// Reads and checks the table: offsets and sizes and, unless `check_hashes` is false, the hashes of
// the bytes that readers read. Errors: Damaged; Unsupported for a later format and for an unknown
// section that is required. `name` is the file's, for errors.
SectionTable read_section_table(std::string_view file, const std::string& name, bool check_hashes);

// Checks the hashes of data that reading a file skips, such as weights (Damaged errors). Returns
// false if the file has such data but no hash of it, because it has format 1.
bool check_data_hashes(std::string_view file, const SectionTable& table, const std::string& name);

// Throws the error for inconsistent bytes.
[[noreturn]] void throw_damaged(std::string_view name, std::string_view where,
                                std::string_view found, std::string_view expected);

// Updates every hash and the file's size: for tests and fuzzers. Returns false if the bytes have no
// whole section table.
bool repair_hashes(std::string& file);

}  // namespace tenon::vm

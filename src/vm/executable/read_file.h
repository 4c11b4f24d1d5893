// Reading a .tnx file: everything is checked, whatever the bytes are, before anything is built from
// it. Damage is an error that says where; it is never a crash, a hang, or memory beyond a small
// multiple of the file's size.
#pragma once

#include <string>

#include "vm/executable/file_format.h"
#include "vm/executable/mapped_file.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

struct ReadOptions {
  std::string name = "<memory>";  // the file, in errors
  // Fuzzers repair nothing and switch the hashes off, so that what lies behind them is tested.
  bool check_hashes = true;
};

struct LoadedUnit {
  Unit unit;  // tensor constants lie in the file's bytes, which they keep alive, read-only
  uint32_t version = 0;
  FileHeader header{};
};

// Reads and verifies (verify.h). Damaged errors; Unsupported for a format younger than this build.
LoadedUnit read_unit(const Ref<FileBytes>& file, const ReadOptions& options = {});

// What each section's hash should be: repairs the hashes of a file whose bytes were changed, for
// tests and fuzzers. False when the bytes don't even have a section table.
bool repair_hashes(std::string& bytes);

}  // namespace tenon::vm

// Reading a .tnx file. Everything is checked before anything is built from it, for any bytes:
// damage is an error that states its place, never a crash, a hang, or memory beyond a small
// multiple of the file's size.
#pragma once

#include <string>

#include "vm/executable/mapped_file.h"
#include "vm/executable/section_table.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

struct ReadOptions {
  std::string name = "<memory>";  // the file, in errors
  // Fuzzers switch the hashes off, so that the code behind them is tested.
  bool check_hashes = true;
};

struct LoadedUnit {
  Unit unit;  // tensor constants borrow the file's bytes, read-only, and keep them alive
  SectionTable table;
  std::string_view file;  // the .tnx file: all bytes, or those in a shared object
};

// Reads and verifies (verify.h), under the thread's current limits (device/call_context.h), a .tnx
// file or a shared object that holds one, whose native code isn't opened. Errors: Damaged;
// Unsupported for a later format and for an unknown section that is required.
LoadedUnit read_unit(const Ref<FileBytes>& file, const ReadOptions& options = {});

}  // namespace tenon::vm

// Reading a .tnx file: everything is checked, whatever the bytes are, before anything is built from
// it. Damage is an error that says where; it is never a crash, a hang, or memory beyond a small
// multiple of the file's size.
#pragma once

#include <string>

#include "vm/executable/load_limits.h"
#include "vm/executable/mapped_file.h"
#include "vm/executable/section_table.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

struct ReadOptions {
  std::string name = "<memory>";  // the file, in errors
  // Fuzzers repair nothing and switch the hashes off, so that what lies behind them is tested.
  bool check_hashes = true;
  LoadBudget* budget = nullptr;  // what loading takes is taken from; without one, there is no limit
};

struct LoadedUnit {
  Unit unit;  // tensor constants lie in the file's bytes, which they keep alive, read-only
  SectionTable table;
};

// Reads and verifies (verify.h). Damaged errors; Unsupported ones for a later format and for
// sections that a reader must know and this one doesn't.
LoadedUnit read_unit(const Ref<FileBytes>& file, const ReadOptions& options = {});

}  // namespace tenon::vm

// What an executable holds, in numbers and names.
#pragma once

#include "object/map.h"
#include "vm/isa/unit.h"

namespace tenon::driver {

// Plain data: maps, arrays, strings and integers. `file_bytes` is the size of the unit's file.
//
//   producer, file_bytes, libraries, computes_bytes
//   provenance  what the file was made from, and how (provenance.h)
//   functions   of each: name, exported, signature, registers, instructions (how many of each
//               mnemonic)
//   constants   of each: name, type, bytes, late (whether the file leaves it out)
//   packed      of each: name, effect
//   kernels     the kernels' names
//   targets     of each: triple, cpu, features, bytes (of native code)
Map<String, Any> code_stats(const vm::Unit& unit, size_t file_bytes);

}  // namespace tenon::driver

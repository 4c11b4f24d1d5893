// `tenon dump --memory`: what the functions of a program allocate.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tools/tenon/json_output.h"
#include "vm/isa/unit.h"

namespace tenon::tool {

// Symbols' values, by name: those of --dim. Throws Usage for a name that no formula has.
using Sizes = std::map<std::string, int64_t>;
void print_memory(const vm::Unit& unit, const Sizes& sizes);
void write_memory(JsonWriter& out, const vm::Unit& unit, const Sizes& sizes);

// The bytes of all constants that are tensors.
uint64_t constant_bytes(const vm::Unit& unit);

}  // namespace tenon::tool

// Links relocatable ELF objects into a closed shared object, in this process.
//
// Closed means that it imports nothing, needs no library, runs nothing when opened, and exports
// only `exported`. A symbol that stays undefined is a bug in Tenon and an Internal error.
// The bytes depend only on the objects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::codegen {

// `objects` are object files of the emulation (Architecture::emulation). Thread-safe; calls are
// serialised, since the linker keeps global state.
std::vector<uint8_t> link_closed(const std::vector<std::string>& objects, const char* emulation,
                                 const std::vector<std::string>& exported);

}  // namespace tenon::codegen

// Links relocatable ELF objects into a closed shared object, in this process.
//
// Closed: it imports nothing, needs no library, runs nothing when opened, and exports only
// `exported_symbol`. A symbol that stays undefined is our bug and throws Error (Internal).
// The bytes depend on the objects alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen {

// `objects` are object files for `architecture`, "x86_64" or "aarch64". Any thread may call this;
// calls wait for each other, since the linker keeps global state.
std::vector<uint8_t> link_closed(const std::vector<std::string>& objects,
                                 std::string_view architecture, std::string_view exported_symbol);

}  // namespace tenon::codegen

// Checks that an ELF shared object is closed: it imports nothing, needs no library, and runs
// nothing when opened. A kernel object must be closed before the dynamic loader sees it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenon::vm {

// Returns nullopt for a closed object, otherwise what it has that a kernel object must not have.
// Reads only within `bytes`, whatever they are.
std::optional<std::string> why_not_closed(std::string_view bytes);

}  // namespace tenon::vm

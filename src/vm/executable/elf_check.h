// Is an ELF shared object closed? A kernel object must be before the dynamic loader sees it: it
// imports nothing, needs no library, and runs nothing when it is opened.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenon::vm {

// Nothing when it is; else what it has that a kernel object must not have. Reads only within
// `bytes`, whatever they are.
std::optional<std::string> why_not_closed(std::string_view bytes);

}  // namespace tenon::vm

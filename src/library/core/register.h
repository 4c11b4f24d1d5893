// Registers this library's functions. A second call does nothing.
#pragma once

namespace tenon {

void register_core_library();

}  // namespace tenon

// What this process's allocator has handed out to the calling thread, less what that has returned.
#pragma once

#include <cstdint>

namespace allocated_memory {

void begin();    // counts from here on
int64_t most();  // bytes at once, since then

}  // namespace allocated_memory

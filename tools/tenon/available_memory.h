// The memory that the system has left for this process.
#pragma once

#include <cstdint>

namespace tenon::tool {

// Bytes that can be used without the system ending a process for lack of memory: available memory
// and free swap space, less where this process's cgroups allow less. INT64_MAX if unknown.
int64_t available_memory();

}  // namespace tenon::tool

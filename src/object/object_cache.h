// The memory of small objects: what dies leaves its memory to the next object of its size.
//
// Each thread keeps the memory of up to 64 dead objects of each size up to 256 bytes, until it
// ends. In a steady state, code that makes and drops objects asks the system for nothing. What is
// kept counts for no budget. Nothing is kept under AddressSanitizer, which then sees each object's
// end.
#pragma once

#include <cstddef>

namespace tenon {

// Memory for an object of at most PTRDIFF_MAX bytes, and its return with the same size.
void* new_memory(size_t bytes);
void delete_memory(void* memory, size_t bytes) noexcept;

// Frees what this thread keeps.
void clear_object_cache() noexcept;

}  // namespace tenon

// Memory that nothing has written, filled: linked into a program, filled_memory.cc replaces the
// C library's allocator by one that fills each block when it is allocated, and again when it is
// freed. Not with sanitizers, which have allocators of their own.
#pragma once

namespace tenon::fuzz {

// From now on, blocks are filled with this byte.
void fill_memory_with(unsigned char byte);

}  // namespace tenon::fuzz

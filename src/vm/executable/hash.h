// XXH64, the 64-bit hash of the .tnx sections: it finds damage, it doesn't resist forgery.
// Algorithm: Yann Collet's xxHash specification, version 0.1.1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::vm {

uint64_t xxh64(const void* data, size_t size, uint64_t seed = 0);

struct FileHeader;
// The hash that a header should hold.
uint64_t header_hash(const FileHeader& header);

}  // namespace tenon::vm

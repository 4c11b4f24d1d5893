// A hash that nobody outside the process can predict, for tables whose keys come from files or
// callers: those could otherwise choose keys that all collide. The hashes differ from process to
// process, so no result may depend on them.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon {

struct HashKey {
  uint64_t low, high;
};

// SipHash-1-3 (Aumasson, Bernstein: SipHash, 2012; with one round per word and three at the end).
uint64_t siphash(const HashKey& key, std::string_view bytes);

// Under a key that is drawn once per process.
uint64_t keyed_hash(std::string_view bytes);
uint64_t keyed_hash(uint64_t first, uint64_t second);

}  // namespace tenon

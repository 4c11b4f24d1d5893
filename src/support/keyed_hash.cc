#include "support/keyed_hash.h"

#include <sys/random.h>

#include <bit>
#include <chrono>
#include <cstring>

namespace tenon {

namespace {

static_assert(std::endian::native == std::endian::little, "SipHash reads little-endian words");

class SipHash {
 public:
  explicit SipHash(const HashKey& key)
      : v0_(key.low ^ 0x736f6d6570736575u),
        v1_(key.high ^ 0x646f72616e646f6du),
        v2_(key.low ^ 0x6c7967656e657261u),
        v3_(key.high ^ 0x7465646279746573u) {}

  void add(uint64_t word) {
    v3_ ^= word;
    round();
    v0_ ^= word;
  }

  uint64_t finish() {
    v2_ ^= 0xff;
    for (int i = 0; i < 3; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_, v1_, v2_, v3_;
};

HashKey draw_key() {
  HashKey key{};
  if (getrandom(&key, sizeof key, 0) == sizeof key) return key;
  // A sandbox may refuse the call. The time and where the stack happens to lie must do then.
  key.low = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  key.high = reinterpret_cast<uintptr_t>(&key);
  return key;
}

const HashKey& process_key() {
  static const HashKey key = draw_key();
  return key;
}

}  // namespace

uint64_t siphash(const HashKey& key, std::string_view bytes) {
  SipHash hash(key);
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash.add(word);
  }
  uint64_t last = bytes.size() << 56;
  for (size_t i = 0; i < left; ++i) {
    last |= static_cast<uint64_t>(static_cast<uint8_t>(at[i])) << (8 * i);
  }
  hash.add(last);
  return hash.finish();
}

uint64_t keyed_hash(std::string_view bytes) {
  return siphash(process_key(), bytes);
}

uint64_t keyed_hash(uint64_t first, uint64_t second) {
  SipHash hash(process_key());
  hash.add(first);
  hash.add(second);
  return hash.finish();
}

}  // namespace tenon

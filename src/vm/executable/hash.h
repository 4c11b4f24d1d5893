// XXH64, the 64-bit hash of the .tnx sections: it finds damage, it doesn't resist forgery.
// Algorithm: Yann Collet's xxHash specification, version 0.1.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tenon::vm {

// Of bytes that come in pieces: how they are cut makes no difference.
class Xxh64 {
 public:
  explicit Xxh64(uint64_t seed = 0);
  void update(std::string_view bytes);
  // Of the bytes so far.
  uint64_t digest() const;

 private:
  void stripe(const unsigned char* p);

  uint64_t seed_, lanes_[4];
  uint64_t size_ = 0;
  unsigned char buffer_[32];  // what follows the last whole stripe
  size_t buffered_ = 0;
};

uint64_t xxh64(std::string_view bytes, uint64_t seed = 0);

}  // namespace tenon::vm

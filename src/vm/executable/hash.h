// XXH64, the 64-bit hash of .tnx sections: it detects damage but doesn't resist forgery.
// Algorithm: Yann Collet's xxHash specification, version 0.1.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tenon::vm {

// Hashes bytes passed in pieces; the result doesn't depend on the division.
class Xxh64 {
 public:
  explicit Xxh64(uint64_t seed = 0);
  void update(std::string_view bytes);
  // The hash of the bytes so far.
  uint64_t digest() const;

 private:
  void stripe(const unsigned char* p);

  uint64_t seed_, lanes_[4];
  uint64_t size_ = 0;
  unsigned char buffer_[32];  // the bytes after the last whole stripe
  size_t buffered_ = 0;
};

uint64_t xxh64(std::string_view bytes, uint64_t seed = 0);

}  // namespace tenon::vm

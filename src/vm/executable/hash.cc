#include "vm/executable/hash.h"
#include "support/poll.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenon::vm {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

template <class T>
T read(const unsigned char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

uint64_t round(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

uint64_t merge(uint64_t hash, uint64_t lane) {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace

Xxh64::Xxh64(uint64_t seed)
    : seed_(seed), lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1} {}

void Xxh64::stripe(const unsigned char* p) {
  for (size_t i = 0; i < 4; ++i) lanes_[i] = round(lanes_[i], read<uint64_t>(p + 8 * i));
}

void Xxh64::update(std::string_view bytes) {
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  size_ += left;
  if (buffered_ != 0) {
    const size_t taken = std::min(left, sizeof buffer_ - buffered_);
    std::memcpy(buffer_ + buffered_, p, taken);
    buffered_ += taken;
    p += taken;
    left -= taken;
    if (buffered_ < sizeof buffer_) return;
    stripe(buffer_);
    buffered_ = 0;
  }
  while (left >= sizeof buffer_) {
    const size_t part = std::min(left, kPollBytes) / sizeof buffer_ * sizeof buffer_;
    for (const auto* end = p + part; p < end; p += sizeof buffer_) stripe(p);
    left -= part;
    if (left >= sizeof buffer_) poll();
  }
  if (left) std::memcpy(buffer_, p, left);
  buffered_ = left;
}

uint64_t Xxh64::digest() const {
  uint64_t hash = seed_ + kPrime5;
  if (size_ >= sizeof buffer_) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_) hash = merge(hash, lane);
  }
  hash += size_;
  const unsigned char *p = buffer_, *end = buffer_ + buffered_;
  for (; end - p >= 8; p += 8) {
    hash = std::rotl(hash ^ round(0, read<uint64_t>(p)), 27) * kPrime1 + kPrime4;
  }
  if (end - p >= 4) {
    hash = std::rotl(hash ^ read<uint32_t>(p) * kPrime1, 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p < end; ++p) hash = std::rotl(hash ^ *p * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

uint64_t xxh64(std::string_view bytes, uint64_t seed) {
  Xxh64 hash(seed);
  hash.update(bytes);
  return hash.digest();
}

}  // namespace tenon::vm

// Random numbers: Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As
// Easy as 1, 2, 3" (2011), a generator whose n-th block of four words is a function of n and a key.
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "library/algorithms/functions.h"
#include "library/argument/argument.h"
#include "support/poll.h"

namespace tenon::algorithms {

namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.random";

constexpr int kRounds = 10;
constexpr uint64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t kKeySteps[] = {0x9E3779B9, 0xBB67AE85};

using Block = std::array<uint32_t, 4>;

Block block(uint64_t counter, uint64_t key) {
  Block x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k[] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t even = kMultipliers[0] * x[0], odd = kMultipliers[1] * x[2];
    x = {static_cast<uint32_t>(odd >> 32) ^ x[1] ^ k[0], static_cast<uint32_t>(odd),
         static_cast<uint32_t>(even >> 32) ^ x[3] ^ k[1], static_cast<uint32_t>(even)};
    for (int i = 0; i < 2; ++i) k[i] += kKeySteps[i];
  }
  return x;
}

uint64_t fresh_key() {
  uint64_t key = 0;
  while (getrandom(&key, sizeof key, 0) != static_cast<ssize_t>(sizeof key)) {
    if (errno != EINTR) fail(kName, cat("the system gives no seed: ", std::strerror(errno)));
  }
  return key;
}

// u32 words of a shape. The same for equal seeds, in every run and on every machine.
Tensor random(const Shape& shape, int64_t seed, int64_t seeded) {
  Tensor words = allocate_tensor(shape.dims(), u32);
  const uint64_t key = seeded != 0 ? static_cast<uint64_t>(seed) : fresh_key();
  auto* out = static_cast<uint32_t*>(words.data());
  Ticker ticker;
  for (int64_t i = 0; i < words.count(); i += 4) {
    ticker.tick();
    const Block four = block(static_cast<uint64_t>(i) / 4, key);
    std::copy_n(four.begin(), std::min<int64_t>(4, words.count() - i), out + i);
  }
  return words;
}

}  // namespace

void register_random(Registration& functions) {
  library::add_typed(functions, library::signature(kName), random);
}

}  // namespace tenon::algorithms

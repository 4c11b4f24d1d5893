// The least that a step's weights cost: how fast the caches give them, and how fast they multiply.
#include <stddef.h>

#ifdef __AVX512F__
enum { kBytes = 64 };
#else
enum { kBytes = 32 };
#endif
typedef float vector __attribute__((vector_size(kBytes)));
enum { kLanes = kBytes / sizeof(float), kSums = 8 };  // sums that don't wait for each other
enum { kGroups = 16 };                                // of kSums vectors, in a part

// Reads `count` floats, `times` times, and returns the sum of what it read. Every other time, it
// reads the parts from the last to the first, whose end the caches may still hold. `data` is
// aligned to 64 bytes; floats after the last whole part are left out.
float read_floats(const float* data, size_t count, size_t times) {
  vector sums[kSums] = {0};
  const size_t parts = count / kLanes / kSums / kGroups;
  for (size_t n = 0; n < times; ++n) {
    for (size_t k = 0; k < parts; ++k) {
      const size_t part = n % 2 == 0 ? k : parts - 1 - k;
      const vector* from = (const vector*)data + part * kSums * kGroups;
      for (size_t i = 0; i < kGroups; ++i, from += kSums) {
#pragma GCC unroll 8
        for (int j = 0; j < kSums; ++j) sums[j] += from[j];
      }
    }
  }
  float total = 0;
  for (int j = 0; j < kSums; ++j) {
    for (int k = 0; k < kLanes; ++k) total += sums[j][k];
  }
  return total;
}

// Adds `count` products, more or less, of numbers that are in registers, and returns a sum of them.
float multiply_adds(size_t count) {
  enum { kChains = 12 };  // that don't wait for each other
  vector sums[kChains] = {0};
  vector factor = {0}, term = {0};
  __asm__ volatile("" : "+m"(factor), "+m"(term));  // unknown, so that nothing is computed beforehand
  for (size_t n = 0; n < count / kLanes / kChains; ++n) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) sums[j] = sums[j] * factor + term;
  }
  float total = 0;
  for (int j = 0; j < kChains; ++j) {
    for (int k = 0; k < kLanes; ++k) total += sums[j][k];
  }
  return total;
}

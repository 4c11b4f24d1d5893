#include "report/peak.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "device/parallel.h"

// A function for each width of vectors that x86 has; the loader chooses. Elsewhere, and with Clang,
// which refuses the attribute beside noinline, the baseline.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TENON_PER_CPU \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"), noinline))
#else
#define TENON_PER_CPU __attribute__((noinline))
#endif

namespace tenon::report {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Enough independent sums to fill the pipelines of two units for 16 floats at a time.
constexpr int64_t kSums = 16 * 16;
constexpr int64_t kRounds = 20'000;

// Computes 2 * kSums * kRounds operations.
TENON_PER_CPU float multiply_and_add(float factor) {
  float sums[kSums];
  for (int64_t i = 0; i < kSums; ++i) sums[i] = static_cast<float>(i);
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 64
    for (int64_t i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + 0.5f;
  }
  float all = 0;
  for (const float sum : sums) all += sum;
  return all;
}

TENON_PER_CPU uint64_t add_up(const uint64_t* words, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

// Calls `work(part)` for each of `threads` parts side by side and returns the seconds of the
// fastest of a few runs.
template <class Work>
double fastest(int32_t threads, const Work& work) {
  double best = 1e9;
  for (int run = 0; run < 4; ++run) {
    const auto start = Clock::now();
    parallel_for(
        threads, 1,
        [&](int64_t begin, int64_t end) {
          for (int64_t part = begin; part < end; ++part) work(part);
        },
        /*each_chunk=*/true);
    best = std::min(best, seconds_since(start));
  }
  return best;
}

}  // namespace

Peak measure_peak(int32_t threads) {
  const ThreadsScope scope(threads);
  const int32_t parts = threads_in_scope();
  volatile float factor = 0.999f;  // so that nothing is computed beforehand
  std::vector<float> sums(static_cast<size_t>(parts));
  const double computing = fastest(
      parts, [&](int64_t part) { sums[static_cast<size_t>(part)] = multiply_and_add(factor); });
  // More than the caches of a core hold.
  constexpr int64_t kWords = int64_t{4} << 20;
  const std::unique_ptr<uint64_t[]> words(new uint64_t[static_cast<size_t>(kWords)]());
  std::vector<uint64_t> totals(static_cast<size_t>(parts));
  const double reading = fastest(parts, [&](int64_t part) {
    const int64_t begin = part * kWords / parts, end = (part + 1) * kWords / parts;
    totals[static_cast<size_t>(part)] = add_up(words.get() + begin, end - begin);
  });
  volatile double used = 0;  // keeps the results
  for (const float sum : sums) used = used + static_cast<double>(sum);
  for (const uint64_t total : totals) used = used + static_cast<double>(total);
  Peak peak;
  peak.flops_per_second = 2.0 * kSums * kRounds * parts / computing;
  peak.bytes_per_second = 8.0 * kWords / reading;
  return peak;
}

std::optional<double> share_of_roofline(const std::optional<double>& flops, int64_t bytes,
                                        int64_t ns, const Peak& peak) {
  if (ns <= 0 || peak.bytes_per_second <= 0 || peak.flops_per_second <= 0) return std::nullopt;
  const double least = std::max(static_cast<double>(bytes) / peak.bytes_per_second,
                                flops.value_or(0) / peak.flops_per_second);
  if (least <= 0) return std::nullopt;
  return least / (static_cast<double>(ns) * 1e-9);
}

}  // namespace tenon::report

#include "vm/executable/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "vm/isa/short_text.h"

namespace tenon::vm {
namespace {

using FeatureName = ShortText<15>;
struct Feature {
  int number;
  FeatureName name;
};
constexpr Feature kFeatures[] = {
#define TENON_CPU_FEATURE(number, name) {number, name},
#include "vm/executable/cpu_features.def"
#undef TENON_CPU_FEATURE
};

void add(CpuFeatureSet& set, int bit) {
  set[static_cast<size_t>(bit) / 64] |= uint64_t{1} << (bit % 64);
}

#if defined(__x86_64__)
// The cpuid bit of each feature, and the state that the system must save for it (bits of XCR0).
struct CpuidBit {
  FeatureName name;
  uint32_t leaf, subleaf;
  char reg;
  int bit;
  uint64_t state;
};
constexpr uint64_t kAvx = 0x6, kAvx512 = 0xe6, kAmx = 0x60000;
constexpr CpuidBit kCpuidBits[] = {
    {"sse3", 1, 0, 'c', 0, 0},
    {"ssse3", 1, 0, 'c', 9, 0},
    {"sse4.1", 1, 0, 'c', 19, 0},
    {"sse4.2", 1, 0, 'c', 20, 0},
    {"popcnt", 1, 0, 'c', 23, 0},
    {"avx", 1, 0, 'c', 28, kAvx},
    {"f16c", 1, 0, 'c', 29, kAvx},
    {"fma", 1, 0, 'c', 12, kAvx},
    {"avx2", 7, 0, 'b', 5, kAvx},
    {"bmi", 7, 0, 'b', 3, 0},
    {"bmi2", 7, 0, 'b', 8, 0},
    {"lzcnt", 0x80000001, 0, 'c', 5, 0},
    {"movbe", 1, 0, 'c', 22, 0},
    {"avx512f", 7, 0, 'b', 16, kAvx512},
    {"avx512cd", 7, 0, 'b', 28, kAvx512},
    {"avx512bw", 7, 0, 'b', 30, kAvx512},
    {"avx512dq", 7, 0, 'b', 17, kAvx512},
    {"avx512vl", 7, 0, 'b', 31, kAvx512},
    {"avx512vnni", 7, 0, 'c', 11, kAvx512},
    {"avx512bf16", 7, 1, 'a', 5, kAvx512},
    {"avx512fp16", 7, 0, 'd', 23, kAvx512},
    {"avxvnni", 7, 1, 'a', 4, kAvx},
    {"avx512ifma", 7, 0, 'b', 21, kAvx512},
    {"avx512vbmi", 7, 0, 'c', 1, kAvx512},
    {"avx512vbmi2", 7, 0, 'c', 6, kAvx512},
    {"avx512bitalg", 7, 0, 'c', 12, kAvx512},
    {"avx512vpopcntdq", 7, 0, 'c', 14, kAvx512},
    {"amx-tile", 7, 0, 'd', 24, kAmx},
    {"amx-int8", 7, 0, 'd', 25, kAmx},
    {"amx-bf16", 7, 0, 'd', 22, kAmx},
};

CpuFeatureSet detect() {
  CpuFeatureSet set{};
  uint32_t a = 0, b = 0, c = 0, d = 0;
  uint64_t saved = 0;
  constexpr uint32_t kOsxsave = 1u << 27;
  if (__get_cpuid(1, &a, &b, &c, &d) && (c & kOsxsave)) {
    uint32_t low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    saved = uint64_t{high} << 32 | low;
  }
  for (const CpuidBit& f : kCpuidBits) {
    if (!__get_cpuid_count(f.leaf, f.subleaf, &a, &b, &c, &d)) continue;
    uint32_t reg = f.reg == 'a' ? a : f.reg == 'b' ? b : f.reg == 'c' ? c : d;
    if ((reg >> f.bit & 1) && (saved & f.state) == f.state) add(set, cpu_feature_bit(f.name));
  }
  return set;
}
#else
CpuFeatureSet detect() {
  return {};
}
#endif

}  // namespace

int cpu_feature_bit(std::string_view name) {
  for (const Feature& f : kFeatures) {
    if (f.name == name) return f.number;
  }
  return -1;
}

CpuFeatureSet cpu_feature_set(const std::vector<std::string>& names) {
  CpuFeatureSet set{};
  for (const auto& name : names) {
    if (int bit = cpu_feature_bit(name); bit >= 0) add(set, bit);
  }
  return set;
}

std::vector<std::string> cpu_feature_names(const CpuFeatureSet& set) {
  std::vector<std::string> names;
  for (const Feature& f : kFeatures) {
    if (set[static_cast<size_t>(f.number) / 64] >> (f.number % 64) & 1) names.emplace_back(f.name);
  }
  return names;
}

const CpuFeatureSet& host_cpu_features() {
  static const CpuFeatureSet set = detect();
  return set;
}

std::vector<std::string> missing_cpu_features(const std::vector<std::string>& needed) {
  std::vector<std::string> missing;
  const CpuFeatureSet& host = host_cpu_features();
  for (const auto& name : needed) {
    int bit = cpu_feature_bit(name);
    if (bit < 0 || !(host[static_cast<size_t>(bit) / 64] >> (bit % 64) & 1)) {
      missing.push_back(name);
    }
  }
  return missing;
}

}  // namespace tenon::vm

#include "vm/executable/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "vm/isa/short_text.h"

namespace tenon::vm {
namespace {

constexpr size_t kLongestName = longest({
#define TENON_CPU_FEATURE(number, name, ...) name,
#include "vm/executable/cpu_features.def"
#undef TENON_CPU_FEATURE
});
using FeatureName = ShortText<kLongestName>;
struct Feature {
  int number;
  FeatureName name;
  uint32_t leaf, subleaf;
  enum Register : uint8_t { a, b, c, d } reg;
  uint8_t bit;
  uint32_t state;  // bits of XCR0
};
constexpr uint32_t kNoState = 0, kAvx = 0x6, kAvx512 = 0xe6, kAmx = 0x60000;
constexpr Feature kFeatures[] = {
#define TENON_CPU_FEATURE(number, name, leaf, subleaf, reg, bit, state) \
  {number, name, leaf, subleaf, Feature::reg, bit, state},
#include "vm/executable/cpu_features.def"
#undef TENON_CPU_FEATURE
};

void add(CpuFeatureSet& set, int bit) {
  set[static_cast<size_t>(bit) / 64] |= uint64_t{1} << (bit % 64);
}

#if defined(__x86_64__)
CpuFeatureSet detect() {
  CpuFeatureSet set{};
  uint32_t regs[4] = {};  // a, b, c, d
  uint64_t saved = 0;
  constexpr uint32_t kOsxsave = 1u << 27;
  if (__get_cpuid(1, &regs[0], &regs[1], &regs[2], &regs[3]) && (regs[2] & kOsxsave)) {
    uint32_t low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    saved = uint64_t{high} << 32 | low;
  }
  for (const Feature& f : kFeatures) {
    if (!__get_cpuid_count(f.leaf, f.subleaf, &regs[0], &regs[1], &regs[2], &regs[3])) continue;
    if ((regs[f.reg] >> f.bit & 1) && (saved & f.state) == f.state) add(set, f.number);
  }
  return set;
}

// Whether the system lets this process use registers that hold matrices. It is asked only if code
// needs them: they make the frames of signals larger, so that it refuses while a thread has a
// smaller stack for them. What it said first holds: code is chosen for one set of features.
bool may_use_matrices() {
  constexpr long kRequestPermission = 0x1023, kMatrices = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  static const bool may = syscall(SYS_arch_prctl, kRequestPermission, kMatrices) == 0;
  return may;
}
#else
CpuFeatureSet detect() {
  return {};
}
bool may_use_matrices() {
  return false;
}
#endif

bool is_usable(const Feature& f) {
  const CpuFeatureSet& host = host_cpu_features();
  const auto bit = static_cast<size_t>(f.number);
  return (host[bit / 64] >> (bit % 64) & 1) && (f.state != kAmx || may_use_matrices());
}

const Feature* feature_of(std::string_view name) {
  for (const Feature& f : kFeatures) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

}  // namespace

int cpu_feature_bit(std::string_view name) {
  const Feature* const f = feature_of(name);
  return f ? f->number : -1;
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
  for (const auto& name : needed) {
    const Feature* const f = feature_of(name);
    if (!f || !is_usable(*f)) missing.push_back(name);
  }
  return missing;
}

}  // namespace tenon::vm

#include "library/onednn/kernel_sets.h"

#include <array>
#include <cstddef>

namespace tenon::onednn {
namespace {

#define TENON_KERNEL_SET(name, runs) +1
constexpr size_t kCount = 0
#include "library/onednn/kernel_sets.def"
    ;
#undef TENON_KERNEL_SET

struct Sets {
  std::array<const KernelSet*, kCount> sets{};
  size_t count = 0;
};

Sets sets_of_this_processor() {
  Sets found;
#define TENON_KERNEL_SET(name, runs) \
  if (runs) found.sets[found.count++] = &k##name##Kernels;
#include "library/onednn/kernel_sets.def"
#undef TENON_KERNEL_SET
  return found;
}

}  // namespace

std::span<const KernelSet* const> kernel_sets() {
  static const Sets found = sets_of_this_processor();
  return std::span(found.sets).first(found.count);
}

const KernelSet& kernel_set() {
  return *kernel_sets().front();
}

}  // namespace tenon::onednn

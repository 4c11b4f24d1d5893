#include "vm/executable/kernel_choice.h"

#include <algorithm>

#include "support/text.h"
#include "vm/executable/cpu_features.h"

namespace tenon::vm {

const KernelTarget* choose_kernels(const Unit& unit,
                                   const std::optional<std::vector<std::string>>& available,
                                   std::vector<std::string>* reasons) {
  for (const KernelTarget& k : unit.kernels) {
    std::string_view architecture = std::string_view(k.triple).substr(0, k.triple.find('-'));
    auto missing = missing_cpu_features(k.cpu_features);
    if (available) {
      for (const std::string& feature : k.cpu_features) {
        if (std::ranges::find(*available, feature) == available->end()) missing.push_back(feature);
      }
    }
    std::string reason;
    if (architecture != kHostArchitecture) {
      reason = cat("code for ", printable(k.triple));
    } else if (!missing.empty()) {
      reason = cat("code that needs ", printable(join(missing, ", ")));
    } else if (!unit.shared_code && !k.host_object()) {
      reason = cat("no code for the host of ", printable(k.triple));
    } else {
      return &k;
    }
    if (reasons) reasons->push_back(std::move(reason));
  }
  return nullptr;
}

}  // namespace tenon::vm

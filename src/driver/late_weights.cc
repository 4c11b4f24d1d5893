#include "driver/late_weights.h"

#include <unordered_map>
#include <unordered_set>

#include "object/string_tensor.h"
#include "support/text.h"

namespace tenon::driver {
namespace {

constexpr int64_t kLeastBytes = 1024;
// As in GGUF files, so that their tensors are bound without a copy.
constexpr uint32_t kAlignment = 32;

}  // namespace

std::vector<std::pair<std::string, Tensor>> leave_out_weights(vm::Unit& unit) {
  std::vector<std::pair<std::string, Tensor>> weights;
  std::unordered_set<std::string> taken;
  for (const vm::Constant& c : unit.constants) taken.insert(c.name);
  std::unordered_set<std::string> used;
  std::unordered_map<std::string, int64_t> numbered;  // the last number of each name's
  for (vm::Constant& c : unit.constants) {
    const auto tensor = c.value.try_as<Tensor>();
    if (c.late || !tensor || !*tensor || tensor->bytes() < kLeastBytes) continue;
    if (is_string_tensor(*tensor)) continue;  // weight files hold numbers
    std::string name = printable(c.name);
    if (name.empty() || !used.insert(name).second) {
      const std::string base = name.empty() ? "weight" : name;
      do name = cat(base, "_", ++numbered[base]);
      while (taken.contains(name) || !used.insert(name).second);
    }
    weights.emplace_back(name, *tensor);
    c.late = vm::LateTensor{
        tensor->dtype(), {tensor->shape().begin(), tensor->shape().end()}, kAlignment};
    c.name = std::move(name);
    c.value = Any();
  }
  return weights;
}

}  // namespace tenon::driver

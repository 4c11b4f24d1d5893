#include "report/memory_plan.h"

#include <map>

#include "driver/shown_names.h"
#include "report/code_calls.h"
#include "vm/isa/allocation.h"

namespace tenon::report {
namespace {

class Planning {
 public:
  MemoryPlan of(const vm::Unit& unit, const vm::FunctionUnit& function) {
    for_each_step(unit, function, [&](const CodeStep& step) { read(step); });
    while (!open_.empty()) close(open_.begin()->first);
    return std::move(plan_);
  }

 private:
  void read(const CodeStep& step) {
    for (const uint32_t reg : step.reads) use(step, reg);
    for (const uint32_t reg : step.writes) {
      close(reg);
      storages_.erase(reg);
    }
    if (!step.writes.empty()) allocate(step);
    plan_.steps = step.number + 1;
  }

  void use(const CodeStep& step, uint32_t reg) {
    const auto used = open_.find(reg);
    if (used == open_.end()) return;
    used->second.to = step.number;
    if (step.call && used->second.name.empty())
      used->second.name = driver::shown_name(step.call->callee.name);
  }

  // Sizes are those of a stranger's file: what doesn't fit has no place.
  void allocate(const CodeStep& step) {
    const auto tensor = vm::fresh_tensor(step.instruction);
    const auto block = vm::block_of(step.instruction);
    int64_t offset = end_;
    if (block) {
      if (!block->bytes || *block->bytes < 0) return;
      if (__builtin_add_overflow(end_, *block->bytes, &end_)) {
        end_ = offset;
        return;
      }
      if (!tensor) storages_[step.writes[0]] = offset;
    }
    const auto bytes = tensor ? tensor->bytes() : std::nullopt;
    if (!bytes || *bytes < 0) return;
    if (tensor->place) {
      const auto storage = storages_.find(tensor->place->storage);
      if (storage == storages_.end() || !tensor->place->offset.is(vm::ArgKind::Immediate) ||
          __builtin_add_overflow(storage->second, tensor->place->offset.value(), &offset)) {
        return;
      }
    }
    open_[step.writes[0]] = {"", offset, *bytes, step.number, step.number};
  }

  void close(uint32_t reg) {
    const auto at = open_.find(reg);
    if (at == open_.end()) return;
    plan_.slots.push_back(std::move(at->second));
    open_.erase(at);
  }

  MemoryPlan plan_;
  std::map<uint32_t, int64_t> storages_;       // by register: where it begins
  std::map<uint32_t, MemoryPlan::Slot> open_;  // by register
  int64_t end_ = 0;
};

}  // namespace

std::optional<MemoryPlan> memory_plan_of(const vm::Unit& unit) {
  if (unit.functions.empty()) return std::nullopt;
  const int64_t main = unit.find_exported("main");
  MemoryPlan plan = Planning().of(unit, unit.functions[main < 0 ? 0 : static_cast<size_t>(main)]);
  return plan.slots.empty() ? std::nullopt : std::optional(std::move(plan));
}

}  // namespace tenon::report

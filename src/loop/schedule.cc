#include "loop/schedule.h"

#include <algorithm>

#include "loop/schedule_plain.h"
#include "loop/schedule_recurrence.h"
#include "loop/schedule_stages.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

StmtRef plain_compute(const Compute& c) {
  std::vector<StmtRef> all;
  for (const auto& s : c.stages) all.push_back(plain_stage(*s, !c.in_bounds));
  StmtRef body = seq(std::move(all));
  for (size_t i = c.stages.size(); i-- > 0;) {
    const auto& out = c.stages[i]->out;
    if (std::find(c.outputs.begin(), c.outputs.end(), out) == c.outputs.end()) {
      body = alloc(out, body);
    }
  }
  return body;
}

StmtRef nest_of(const Compute& compute, const ScheduleOptions& options) {
  return options.level == ScheduleLevel::kPlain ? plain_compute(compute)
                                                : schedule_stages(compute, options);
}

KernelRef kernel_of(const KernelInterface& interface, std::string_view name, StmtRef body) {
  auto k = make<Kernel>();
  k->name = String(name);
  k->inputs = interface.inputs;
  k->outputs = interface.outputs;
  k->integers = interface.integers;
  k->in_place = interface.in_place;
  k->in_bounds = interface.in_bounds;
  k->body = std::move(body);
  check(*k);
  return k;
}

}  // namespace

KernelRef lower(const Compute& compute, std::string_view name, const ScheduleOptions& options) {
  check_whole(compute);
  return kernel_of(compute, name, nest_of(compute, options));
}

KernelRef lower(const Recurrence& recurrence, std::string_view name,
                const ScheduleOptions& options) {
  check(recurrence);
  return kernel_of(recurrence, name,
                   repeat_step(recurrence, nest_of(*recurrence.step, options), options));
}

KernelRef loop_nest(const KernelInterfaceRef& kernel, std::string_view name,
                    const ScheduleOptions& options) {
  if (auto* compute = kernel.as<Compute>()) return lower(*compute, name, options);
  if (auto* repeated = kernel.as<Recurrence>()) return lower(*repeated, name, options);
  auto* nest = kernel.as<Kernel>();
  TENON_ASSERT(nest, "kernel ", name, " is neither a Compute, a Recurrence nor a loop nest");
  return nest->name == name ? KernelRef(nest) : renamed(*nest, name);
}

}  // namespace tenon::loop

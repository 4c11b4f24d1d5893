#include "loop/schedule.h"

#include <algorithm>
#include <unordered_set>

#include "loop/schedule_plain.h"
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

}  // namespace

KernelRef lower(const Compute& compute, std::string_view name, const ScheduleOptions& options) {
  check_whole(compute);
  auto k = make<Kernel>();
  k->name = String(name);
  k->inputs = compute.inputs;
  k->outputs = compute.outputs;
  k->integers = compute.integers;
  k->in_place = compute.in_place;
  k->in_bounds = compute.in_bounds;
  k->body = options.level == ScheduleLevel::kPlain ? plain_compute(compute)
                                                   : schedule_stages(compute, options);
  check(*k);
  return k;
}

KernelRef loop_nest(const KernelInterfaceRef& kernel, std::string_view name,
                    const ScheduleOptions& options) {
  if (auto* compute = kernel.as<Compute>()) return lower(*compute, name, options);
  auto* nest = kernel.as<Kernel>();
  TENON_ASSERT(nest, "kernel ", name, " is neither a Compute nor a loop nest");
  return nest->name == name ? KernelRef(nest) : renamed(*nest, name);
}

}  // namespace tenon::loop

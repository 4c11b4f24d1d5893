#include "loop/schedule.h"

#include <algorithm>
#include <unordered_set>

#include "loop/schedule_plain.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

// Every size that the kernel names, parameters first.
void for_each_dim(const Kernel& k, const std::function<void(const Dim&)>& visit) {
  for (const auto& list : {k.inputs, k.outputs}) {
    for (const auto& b : list) {
      for (const Dim& d : b->shape) visit(d);
    }
  }
  Seen seen;
  for_each_stmt(k.body, [&](const StmtRef& s) {
    if (s->kind == StmtKind::kAlloc) {
      for (const Dim& d : static_cast<const Alloc&>(*s).buffer->shape) visit(d);
    }
    for (const ExprRef& root : direct_exprs(*s)) {
      post_order(
          root,
          [&](const ExprRef& e) {
            if (e->kind == ExprKind::kDimValue) visit(static_cast<const DimValue&>(*e).dim);
            if (e->kind == ExprKind::kCheckedIndex) {
              visit(static_cast<const CheckedIndex&>(*e).extent);
            }
            if (e->kind == ExprKind::kLoad) {
              for (const Dim& d : static_cast<const Load&>(*e).buffer->shape) visit(d);
            }
          },
          &seen);
    }
  });
}

Array<String> unbound_symbols(const Kernel& k) {
  std::unordered_set<std::string> bound;
  for (const auto& list : {k.inputs, k.outputs}) {
    for (const auto& b : list) {
      for (const Dim& d : b->shape) {
        if (d.kind() == DimKind::kSymbol) bound.insert(d.node().name.str());
      }
    }
  }
  std::vector<std::string> all;
  for_each_dim(k, [&](const Dim& d) { collect_symbols(d, &all); });
  Array<String> integers;
  for (const std::string& s : all) {
    if (!bound.contains(s)) integers.push_back(String(s));
  }
  return integers;
}

StmtRef plain_compute(const Compute& c) {
  std::vector<StmtRef> all;
  for (const auto& s : c.stages) all.push_back(plain_stage(*s));
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

KernelRef schedule(const Compute& compute, const ScheduleOptions& options) {
  check(compute);
  auto k = make<Kernel>();
  k->name = String(options.name);
  k->inputs = compute.inputs;
  k->outputs = compute.outputs;
  k->body = plain_compute(compute);
  k->integers = unbound_symbols(*k);
  check(*k);
  return k;
}

}  // namespace tenon::loop

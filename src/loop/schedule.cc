#include "loop/schedule.h"

#include <algorithm>
#include <unordered_set>

#include "loop/schedule_plain.h"
#include "loop/schedule_stages.h"
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

// Pairs of an output and an input of the same type, which the kernel reads nowhere but at the
// element that it writes, for that write.
Array<Array<int64_t>> in_place_pairs(const Compute& c) {
  Array<Array<int64_t>> pairs;
  for (size_t o = 0; o < c.outputs.size(); ++o) {
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      const Buffer &out = *c.outputs[o], &in = *c.inputs[i];
      if (out.dtype != in.dtype || out.shape.to_vector() != in.shape.to_vector()) continue;
      bool fits = true, read = false;
      for (const auto& s : c.stages) {
        bool writes = s->out.get() == &out && s->kind == StageKind::kMap;
        Seen seen;
        for (const ExprRef& root : stage_exprs(*s)) {
          post_order(
              root,
              [&](const ExprRef& e) {
                if (e->kind != ExprKind::kLoad) return;
                const auto& l = static_cast<const Load&>(*e);
                if (l.buffer.get() != &in) return;
                read = true;
                fits = fits && writes;
                for (size_t k = 0; k < l.indices.size(); ++k) {
                  fits = fits && l.indices[k].get() == s->axes[k].get();
                }
              },
              &seen);
        }
      }
      if (fits && read) pairs.push_back({static_cast<int64_t>(o), static_cast<int64_t>(i)});
    }
  }
  return pairs;
}

}  // namespace

KernelRef schedule(const Compute& compute, const ScheduleOptions& options) {
  check(compute);
  auto k = make<Kernel>();
  k->name = String(options.name);
  k->inputs = compute.inputs;
  k->outputs = compute.outputs;
  k->body = options.level == 0 ? plain_compute(compute) : schedule_stages(compute, options);
  if (options.level > 0) k->in_place = in_place_pairs(compute);
  k->integers = unbound_symbols(*k);
  k->in_bounds = true;
  check(*k);
  return k;
}

}  // namespace tenon::loop

#include "loop/inline_stages.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "loop/affine.h"
#include "loop/cost.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

// The most costly body that is recomputed wherever it is read instead of stored.
constexpr int64_t kCheap = 5 * kSimpleCost;
// And of a factor that a product widens.
constexpr int64_t kCheapWidening = 4 * kCheap;

// Whether an element read at `at` is read again at another point of the stage. (May be true
// wrongly.)
bool repeats(const Stage& s, const Array<ExprRef>& at) {
  std::unordered_map<const Var*, bool> reduced;  // those with an extent that may exceed 1
  for (size_t i = 0; i < s.axes.size(); ++i) {
    if (!s.out->shape[i].is_const(1)) reduced[s.axes[i].get()] = false;
  }
  for (size_t i = 0; i < s.reduce_axes.size(); ++i) {
    if (!s.reduce_extents[i].is_const(1)) reduced[s.reduce_axes[i].get()] = true;
  }
  std::unordered_map<const Var*, bool> missing = reduced;
  for (const ExprRef& index : at) {
    bool by_axis = false, by_reduction = false;
    post_order(index, [&](const ExprRef& e) {
      if (e->kind != ExprKind::kVar) return;
      auto it = reduced.find(static_cast<const Var*>(e.get()));
      if (it == reduced.end()) return;
      missing.erase(it->first);
      (it->second ? by_reduction : by_axis) = true;
    });
    if (by_axis && by_reduction) return true;  // a window
  }
  return !missing.empty();
}

struct Uses {
  int sites = 0;  // loads of different places
  bool repeated = false;
  bool is_factor = true;  // all are factors of sums of products
  bool in_words = false;  // by a sum of dot products of bytes, four neighbours at once
};

// Whether the stage sums products of which `load` is a factor.
bool has_factor(const Stage& s, const Load& load) {
  if (s.kind != StageKind::kReduce || s.reduction != Reduction::kSum ||
      s.body->kind != ExprKind::kBinary) {
    return false;
  }
  const auto& product = static_cast<const Binary&>(*s.body);
  return product.op == BinaryOp::kMul && (product.a.get() == &load || product.b.get() == &load);
}

// Whether a result has more bytes than an element that it is computed from, by few operations, as
// dequantising does.
bool widens(const Stage& s) {
  if (cost(s.body) > kCheapWidening) return false;
  bool narrow = false;
  for_each_load(
      s, [&](const Load& l) { narrow = narrow || l.buffer->dtype.bytes() < s.out->dtype.bytes(); });
  return narrow;
}

// Whether `load` is a byte of a word that a sum of dot products reads, with its neighbours in
// memory.
bool reads_word(const Stage& s, const Load& load) {
  if (s.kind != StageKind::kReduce || s.body->kind != ExprKind::kBinary ||
      static_cast<const Binary&>(*s.body).op != BinaryOp::kByteDot || load.indices.empty()) {
    return false;
  }
  return std::ranges::any_of(
      s.reduce_axes, [&](const Ref<const Var>& v) { return depends_on(load.indices.back(), v); });
}

class Inliner {
 public:
  explicit Inliner(const Compute& c) : compute_(c) {
    for (const auto& s : c.stages) {
      for_each_load(*s, [&](const Load& l) {
        Uses& u = uses_[l.buffer.get()];
        if (same_as_last(*s, l)) return;
        ++u.sites;
        u.is_factor = u.is_factor && has_factor(*s, l);
        u.in_words = u.in_words || reads_word(*s, l);
        u.repeated = u.repeated || s->kind == StageKind::kScan || repeats(*s, l.indices);
      });
    }
  }

  ComputeRef run() {
    std::vector<Ref<const Stage>> stages;
    for (const auto& s : compute_.stages) {
      Ref<const Stage> r = rewritten(s);
      if (is_inlined(*r)) {
        inlined_[r->out.get()] = r;
      } else {
        stages.push_back(r);
      }
    }
    return whole_kernel(compute_.inputs, Array<Ref<const Stage>>(without_dead(stages)),
                        compute_.outputs, compute_.in_bounds);
  }

 private:
  bool is_output(const Ref<const Buffer>& b) const {
    return std::find(compute_.outputs.begin(), compute_.outputs.end(), b) != compute_.outputs.end();
  }

  // Two nodes that load the same place of the same stage count once.
  bool same_as_last(const Stage& s, const Load& l) {
    auto& [stage, places] = last_[l.buffer.get()];
    if (stage != &s) {
      stage = &s;
      places.clear();
    }
    return !places.insert(place_of(l)).second;
  }

  bool is_inlined(const Stage& s) const {
    if (s.kind != StageKind::kMap || is_output(s.out)) return false;
    auto it = uses_.find(s.out.get());
    if (it == uses_.end()) return false;  // unused
    if (it->second.in_words && s.body->kind != ExprKind::kLoad) return false;
    bool once = it->second.sites == 1 && !it->second.repeated;
    // Schedules of products pack a factor, and compute it then: reading it takes longer if it is
    // wider.
    return once || cost(s.body) <= kCheap || (it->second.is_factor && widens(s));
  }

  ExprRef replace(const ExprRef& e) {
    if (e->kind != ExprKind::kLoad) return e;
    const auto& l = static_cast<const Load&>(*e);
    auto it = inlined_.find(l.buffer.get());
    if (it == inlined_.end()) return e;
    // The same place of the same stage gives the same node, so that it is computed once.
    auto [known, is_new] = values_[l.buffer.get()].try_emplace(place_of(l));
    if (!is_new) return known->second.value;
    const Stage& s = *it->second;
    VarMap axes;
    for (size_t i = 0; i < s.axes.size(); ++i) axes[s.axes[i].get()] = l.indices[i];
    known->second = {e, substitute(s.body, axes)};
    // Each copy must be the same number: what is the greatest of all in one may not be exceeded by
    // its copy. A factor is nothing else.
    const Uses& uses = uses_.at(l.buffer.get());
    ExprRef& value = known->second.value;
    if (value->dtype == i64 || (uses.sites > 1 && !uses.is_factor)) value = as_stored(value);
    return known->second.value;
  }

  Ref<const Stage> rewritten(const Ref<const Stage>& s) {
    values_.clear();
    Rewriter rewrite([&](const ExprRef& e) { return replace(e); });
    auto r = make<Stage>(*s);
    r->body = rewrite(s->body);
    if (s->update) r->update = rewrite(s->update);
    r->scatter_indices = s->scatter_indices.map([&](const ExprRef& e) { return rewrite(e); });
    return r;
  }

  std::vector<Ref<const Stage>> without_dead(const std::vector<Ref<const Stage>>& stages) const {
    std::unordered_map<const Buffer*, bool> live;
    for (const auto& b : compute_.outputs) live[b.get()] = true;
    std::vector<Ref<const Stage>> kept;
    for (size_t i = stages.size(); i-- > 0;) {
      if (!live.contains(stages[i]->out.get())) continue;
      kept.push_back(stages[i]);
      for_each_load(*stages[i], [&](const Load& l) { live[l.buffer.get()] = true; });
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

  // The indices of a load, which identify what it reads while they are alive.
  using Place = std::vector<const Expr*>;
  static Place place_of(const Load& l) {
    Place place;
    for (const ExprRef& i : l.indices) place.push_back(i.get());
    return place;
  }

  struct Known {
    ExprRef load, value;  // the load keeps its indices alive
  };

  const Compute& compute_;
  std::unordered_map<const Buffer*, Uses> uses_;
  std::unordered_map<const Buffer*, std::pair<const Stage*, std::set<Place>>> last_;
  std::unordered_map<const Buffer*, Ref<const Stage>> inlined_;
  std::unordered_map<const Buffer*, std::map<Place, Known>> values_;
};

}  // namespace

ComputeRef inline_stages(const ComputeRef& compute) {
  check(*compute);
  return Inliner(*compute).run();
}

}  // namespace tenon::loop

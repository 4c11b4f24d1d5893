// Stages that agree in their first axes, such as a softmax's, share the loops over these: the rest
// of each is computed in turn per row, and intermediate results are scratch of one row, which stays
// in the cache. Other stages follow one another, each with its own nest.
#include "loop/schedule_stages.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "loop/affine.h"
#include "loop/nest.h"
#include "loop/schedule_plain.h"
#include "loop/walk.h"

namespace tenon::loop {
namespace {

// Schedules ask of each load how it depends on each axis, so loads may share a large index only so
// often: a limit for the nodes of all loads' indices.
constexpr int64_t kMostIndexNodes = 1 << 16;

bool has_large_indices(const Stage& s) {
  int64_t left = kMostIndexNodes;
  for_each_load(s, [&](const Load& l) {
    for (const ExprRef& e : l.indices) {
      if (left > 0) left -= count_nodes(e, left);
    }
  });
  return left <= 0;
}

bool keeps_last_axis(const Stage& s) {
  if (s.kind != StageKind::kReduce || s.axes.empty() || s.reduce_axes.empty()) return false;
  return runs_along_result(work_of(s, {}, s.out, [](const ExprRef& e) { return e; }));
}

class StageSchedule {
 public:
  StageSchedule(const Compute& c, const ScheduleOptions& options) : c_(c), options_(options) {
    for (const auto& s : c.stages) {
      if (has_large_indices(*s)) plain_.insert(s.get());
    }
  }

  StmtRef run() {
    std::vector<StmtRef> parts;
    for (size_t i = 0; i < c_.stages.size();) {
      if (is_contraction(*c_.stages[i]) && !plain_.contains(c_.stages[i].get())) {
        auto [nest, after] = contraction(i);
        if (nest) {
          parts.push_back(nest);
          i = after;
          continue;
        }
      }
      size_t end = i + 1, depth = 0;
      while (end < c_.stages.size() && !is_contraction(*c_.stages[end])) {
        size_t d = common_depth(i, end + 1);
        if (d == 0) break;
        depth = d;
        ++end;
      }
      parts.push_back(end > i + 1 ? rows(i, end, depth) : single(*c_.stages[i]));
      i = end;
    }
    StmtRef body = seq(parts);
    for (size_t i = c_.stages.size(); i-- > 0;) {
      const auto& out = c_.stages[i]->out;
      if (!is_output(*out) && !scratch_.contains(out.get())) body = alloc(out, body);
    }
    return body;
  }

 private:
  bool is_output(const Buffer& b) const {
    return std::any_of(c_.outputs.begin(), c_.outputs.end(),
                       [&](const auto& o) { return o.get() == &b; });
  }

  StmtRef single(const Stage& s) {
    if (plain_.contains(&s)) return plain_stage(s, !c_.in_bounds);
    auto same = [](const ExprRef& e) { return e; };
    switch (s.kind) {
      case StageKind::kMap:
        return schedule_map(work_of(s, {}, s.out, same), options_, true);
      case StageKind::kReduce:
        return schedule_reduction(work_of(s, {}, s.out, same), options_, true);
      case StageKind::kScatter:
        return seq({schedule_map(work_of(s, {}, s.out, same), options_, true), plain_updates(s)});
      case StageKind::kScan:
        break;
    }
    return plain_stage(s, !c_.in_bounds);
  }

  // The number of leading axes that the stages [begin, end) share; 0 if they are better kept apart.
  size_t common_depth(size_t begin, size_t end) const {
    const Stage& first = *c_.stages[begin];
    size_t depth = first.axes.size(), most = 0;
    bool reduces = false;
    std::unordered_set<const Buffer*> results;
    for (size_t i = begin; i < end; ++i) {
      const Stage& s = *c_.stages[i];
      if (s.kind != StageKind::kMap && s.kind != StageKind::kReduce) return 0;
      if (plain_.contains(&s)) return 0;
      reduces = reduces || s.kind == StageKind::kReduce;
      most = std::max(most, s.axes.size());
      size_t same = 0, limit = std::min(depth, s.axes.size());
      while (same < limit && s.out->shape[same] == first.out->shape[same]) ++same;
      depth = same;
      if (keeps_last_axis(s)) depth = std::min(depth, s.axes.size() - 1);
      for (const Load* l : loads_in(s.body)) {
        if (!results.contains(l->buffer.get())) continue;
        size_t k = 0;
        while (k < depth && k < l->indices.size() && l->indices[k].get() == s.axes[k].get()) ++k;
        depth = std::min(depth, k);
      }
      results.insert(s.out.get());
    }
    // A single row would leave the other threads idle.
    Dim rows = 1;
    for (size_t k = 0; k < depth; ++k) rows = rows * first.out->shape[k];
    if (rows.is_const(1)) return 0;
    // Elementwise work keeps one axis for its vectors.
    if (!reduces && depth == most) depth = depth == 0 ? 0 : depth - 1;
    return depth;
  }

  // The sum of products at stage `begin`, merged with the pointwise stages right after it that read
  // it (or each other) at their own point. Also returns the first stage that isn't merged.
  std::pair<StmtRef, size_t> contraction(size_t begin) {
    const Stage& s = *c_.stages[begin];
    auto sum = var("sum", accumulator_type(s));
    auto same = [](const ExprRef& e) { return e; };
    Work w = work_of(s, {}, s.out, same);

    std::unordered_set<const Buffer*> merged{s.out.get()};
    std::unordered_map<const Buffer*, ExprRef> value{{s.out.get(), cast(s.out->dtype, sum)}};
    std::vector<std::pair<Ref<const Buffer>, ExprRef>> results{{s.out, value[s.out.get()]}};
    size_t end = begin + 1;
    for (; end < c_.stages.size(); ++end) {
      const Stage& t = *c_.stages[end];
      if (t.kind != StageKind::kMap || t.axes.size() != s.axes.size()) break;
      if (plain_.contains(&t)) break;
      bool fits = true, reads = false;
      VarMap axes;
      for (size_t k = 0; k < t.axes.size(); ++k) {
        fits = fits && t.out->shape[k] == s.out->shape[k];
        axes[t.axes[k].get()] = s.axes[k];
      }
      for (const Load* l : loads_in(t.body)) {
        if (!merged.contains(l->buffer.get())) continue;
        reads = true;
        for (size_t k = 0; k < t.axes.size(); ++k) {
          const ExprRef& at = l->indices[k];
          // An axis of one element is read at 0, or not at all.
          const bool is_zero = s.out->shape[k].is_const(1) && !any_can_fail(at);
          fits = fits && (at.get() == t.axes[k].get() || is_zero);
        }
      }
      if (!fits || !reads) break;
      Rewriter rewrite([&](const ExprRef& e) -> ExprRef {
        if (e->kind != ExprKind::kLoad) return e;
        auto it = value.find(static_cast<const Load&>(*e).buffer.get());
        return it == value.end() ? e : it->second;
      });
      const ExprRef body = rewrite(substitute(t.body, axes));
      results.emplace_back(t.out, body);
      merged.insert(t.out.get());
      if (!may_overwrite_input(*t.out)) value[t.out.get()] = as_stored(body);
    }
    std::vector<Work> after;
    std::unordered_set<const Buffer*> unwritten;
    for (const auto& [out, body] : results) {
      if (!is_output(*out) && !is_read_outside(*out, begin, end)) {
        unwritten.insert(out.get());
        continue;
      }
      Work a;
      a.axes = w.axes;
      a.inside = w.inside;
      a.out = out;
      std::vector<VarRange> ranges = w.axes;
      a.body = flatten_loads(simplify_indices(substitute(body, w.split), ranges), w.vars());
      a.offset = substitute(
          flat_offset(out->shape, Array<ExprRef>(s.axes.begin(), s.axes.end()), {}), w.split);
      a.offset = flat_offset(out->shape, {a.offset}, w.vars());
      after.push_back(std::move(a));
    }
    if (after.empty()) {
      // If nothing reads the sum or what follows from it, the nest still writes the sum.
      unwritten.erase(s.out.get());
      Work a;
      a.axes = w.axes;
      a.out = w.out;
      a.body = cast(w.out->dtype, sum);
      a.offset = w.offset;
      a.inside = w.inside;
      after.push_back(std::move(a));
    }
    StmtRef nest = schedule_word_windows(w, sum, after, options_);
    if (!nest) nest = schedule_windows(w, sum, after, options_, c_.in_bounds);
    if (!nest) nest = schedule_winograd(w, sum, after, options_, c_.in_bounds);
    if (!nest) nest = schedule_contraction(std::move(w), sum, std::move(after), options_, true);
    if (nest) scratch_.insert(unwritten.begin(), unwritten.end());
    return {nest, end};
  }

  // Once such an output is stored, its body must not be computed again: the element that it reads
  // may be gone. What follows loads the output.
  bool may_overwrite_input(const Buffer& out) const {
    return std::ranges::any_of(c_.in_place, [&](const InPlace& pair) {
      return c_.outputs[static_cast<size_t>(pair.output())].get() == &out;
    });
  }

  bool is_read_outside(const Buffer& b, size_t begin, size_t end) const {
    for (size_t i = 0; i < c_.stages.size(); ++i) {
      if (i >= begin && i < end) continue;
      for (const ExprRef& e : stage_exprs(*c_.stages[i])) {
        for (const Load* l : loads_in(e)) {
          if (l->buffer.get() == &b) return true;
        }
      }
    }
    return false;
  }

  StmtRef rows(size_t begin, size_t end, size_t depth) {
    const Stage& first = *c_.stages[begin];
    std::vector<Axis> axes;
    std::vector<Ref<const Var>> leading;
    for (size_t k = 0; k < depth; ++k) {
      axes.push_back({var(cat("row", k), i64), first.out->shape[k]});
      leading.push_back(axes.back().var);
    }
    std::unordered_map<const Buffer*, Ref<const Buffer>> local;
    std::vector<Ref<const Buffer>> locals;
    for (size_t i = begin; i < end; ++i) {
      const auto& out = c_.stages[i]->out;
      if (is_output(*out) || is_read_outside(*out, begin, end)) continue;
      std::vector<Dim> rest(out->shape.begin() + static_cast<std::ptrdiff_t>(depth),
                            out->shape.end());
      local[out.get()] = buffer(out->name.view(), out->dtype, rest);
      locals.push_back(local[out.get()]);
      scratch_.insert(out.get());
    }
    Rewriter rewrite([&](const ExprRef& e) -> ExprRef {
      if (e->kind != ExprKind::kLoad) return e;
      const auto& l = static_cast<const Load&>(*e);
      auto it = local.find(l.buffer.get());
      if (it == local.end()) return e;
      return load(it->second, Array<ExprRef>(l.indices.begin() + static_cast<std::ptrdiff_t>(depth),
                                             l.indices.end()));
    });
    std::vector<StmtRef> parts;
    for (size_t i = begin; i < end; ++i) {
      const Stage& s = *c_.stages[i];
      auto it = local.find(s.out.get());
      Work w = work_of(s, leading, it == local.end() ? s.out : it->second,
                       [&](const ExprRef& e) { return rewrite(e); });
      parts.push_back(s.kind == StageKind::kMap
                          ? schedule_map(std::move(w), options_, false)
                          : schedule_reduction(std::move(w), options_, false));
    }
    StmtRef row = seq(parts);
    for (size_t i = locals.size(); i-- > 0;) row = alloc(locals[i], row);
    return outer_loops(axes, true, row);
  }

  const Compute& c_;
  const ScheduleOptions& options_;
  std::unordered_set<const Stage*> plain_;     // have plain loops
  std::unordered_set<const Buffer*> scratch_;  // results of which only one row exists at a time
};

}  // namespace

StmtRef schedule_stages(const Compute& compute, const ScheduleOptions& options) {
  return StageSchedule(compute, options).run();
}

}  // namespace tenon::loop

#include "loop/nest.h"

#include <algorithm>
#include <unordered_set>

#include "loop/affine.h"
#include "loop/cost.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {

ExprRef sum(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kAdd, a, b);
}
ExprRef difference(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kSub, a, b);
}
ExprRef scaled(const ExprRef& a, int64_t factor) {
  return binary(BinaryOp::kMul, a, index(factor));
}
ExprRef quotient(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kFloorDiv, a, b);
}
ExprRef less(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kLt, a, b);
}
ExprRef smaller(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kMin, a, b);
}

std::vector<Ref<const Var>> Work::vars() const {
  std::vector<Ref<const Var>> all;
  for (const Axis& a : axes) all.push_back(a.var);
  for (const Axis& a : reduce) all.push_back(a.var);
  return all;
}

namespace {

// Whether `v` occurs anywhere except in the index of a load.
bool used_outside_loads(const ExprRef& root, const Ref<const Var>& v) {
  std::vector<ExprRef> stack{root};
  Seen seen;
  while (!stack.empty()) {
    ExprRef e = std::move(stack.back());
    stack.pop_back();
    if (!seen.insert(e.get()).second) continue;
    if (e.get() == v.get()) return true;
    if (e->kind == ExprKind::kLoad) continue;
    for (const ExprRef& o : operands(*e)) stack.push_back(o);
  }
  return false;
}

// Whether the axis only selects a panel of `by` elements and a place in it, and the last panel is
// whole, so that the body may be computed for all of its places.
bool reads_whole_panels(const ExprRef& body, const Axis& axis, const Dim& by) {
  if (used_outside_loads(body, axis.var)) return false;
  for (const Load* l : loads_in(body)) {
    for (size_t i = 0; i < l->indices.size(); ++i) {
      const ExprRef& e = l->indices[i];
      if (!depends_on(e, axis.var)) continue;
      if (e->kind != ExprKind::kBinary) return false;
      const auto& b = static_cast<const Binary&>(*e);
      const auto divisor = as_dim(b.b);
      if (b.a.get() != axis.var.get() || !divisor || !(*divisor == by)) return false;
      const Dim& extent = l->buffer->shape[i];
      const bool whole = b.op == BinaryOp::kFloorDiv ? extent == ceildiv(axis.extent, by)
                                                     : b.op == BinaryOp::kMod && extent == by;
      if (!whole) return false;
    }
  }
  return true;
}

// An axis of the list, and a size by which its variable is divided somewhere in `body`: a divisor
// of the axis, or the width of panels.
struct Split {
  size_t axis;
  Dim by;
  bool divides;
};
std::optional<Split> find_split(const ExprRef& body, const std::vector<Axis>& axes, bool panels) {
  std::optional<Split> found;
  post_order(body, [&](const ExprRef& e) {
    if (found || e->kind != ExprKind::kBinary) return;
    const auto& b = static_cast<const Binary&>(*e);
    if (b.op != BinaryOp::kFloorDiv && b.op != BinaryOp::kMod) return;
    const auto by = as_divisor(b.b);
    if (!by || by->is_const(1)) return;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Axis& v = axes[i];
      if (b.a.get() != v.var.get() || *by == v.extent) continue;
      const bool divides = floordiv(v.extent, *by) * *by == v.extent;
      const bool in_panels = panels && !divides && i + 1 == axes.size() && by->is_const() &&
                             v.extent.is_const() && reads_whole_panels(body, v, *by);
      if (divides || in_panels) found = Split{i, *by, divides};
    }
  });
  return found;
}

// Replaces the axis by one of blocks of `split.by` elements and one of the elements of a block.
// Returns its variable in terms of theirs.
ExprRef split_axis(std::vector<Axis>* axes, const Split& split) {
  const Axis v = (*axes)[split.axis];
  const Axis outer{var(cat(v.var->name, "_outer"), i64),
                   split.divides ? floordiv(v.extent, split.by) : ceildiv(v.extent, split.by)},
      inner{var(cat(v.var->name, "_inner"), i64), split.by};
  (*axes)[split.axis] = inner;
  axes->insert(axes->begin() + static_cast<std::ptrdiff_t>(split.axis), outer);
  return sum(binary(BinaryOp::kMul, outer.var, dim_value(split.by)), inner.var);
}

}  // namespace

Work work_of(const Stage& s, const std::vector<Ref<const Var>>& leading,
             const Ref<const Buffer>& out, const std::function<ExprRef(const ExprRef&)>& rewrite) {
  Work w;
  VarMap lead;
  std::vector<VarRange> fixed;
  for (size_t i = 0; i < s.axes.size(); ++i) {
    if (i < leading.size()) {
      lead[s.axes[i].get()] = leading[i];
      fixed.push_back({leading[i], s.out->shape[i]});
    } else {
      w.axes.push_back({s.axes[i], s.out->shape[i]});
    }
  }
  for (size_t i = 0; i < s.reduce_axes.size(); ++i) {
    w.reduce.push_back({s.reduce_axes[i], s.reduce_extents[i]});
  }
  w.reduction = s.reduction;
  w.accumulate = accumulator_type(s);
  w.padding_is_skippable = s.padding_is_skippable;
  w.may_use_winograd = s.may_use_winograd;
  w.out = out;
  Array<ExprRef> at;
  size_t first = out->shape.size() == s.axes.size() ? 0 : leading.size();
  for (size_t i = first; i < s.axes.size(); ++i) {
    at.push_back(i < leading.size() ? leading[i] : s.axes[i]);
  }
  auto simplified = [&](const ExprRef& e) {
    std::vector<VarRange> ranges = fixed;
    ranges.insert(ranges.end(), w.axes.begin(), w.axes.end());
    ranges.insert(ranges.end(), w.reduce.begin(), w.reduce.end());
    return simplify_indices(e, ranges);
  };
  ExprRef body = simplified(rewrite(substitute(s.body, lead)));
  for (int round = 0; round < 8; ++round) {
    auto split = find_split(body, w.axes, s.kind == StageKind::kReduce && !w.inside);
    if (!split) break;
    const Axis v = w.axes[split->axis];
    const ExprRef whole = split_axis(&w.axes, *split);
    VarMap values{{v.var.get(), whole}};
    for (auto& [old, value] : w.split) value = substitute(value, values);
    w.split[v.var.get()] = whole;
    if (w.inside) w.inside = substitute(w.inside, values);
    if (!split->divides) w.inside = less(whole, dim_value(v.extent));
    body = simplified(substitute(body, values));
    at = at.map([&](const ExprRef& e) { return substitute(e, values); });
  }
  // Reduced axes too, in the same order, such as blocks that share a scale. Not those of an arg
  // reduction, whose result is a place on its only axis.
  for (int round = 0; round < 8 && !is_arg_reduction(s.reduction); ++round) {
    const auto split = find_split(body, w.reduce, /*panels=*/false);
    if (!split) break;
    const Axis v = w.reduce[split->axis];
    const ExprRef whole = split_axis(&w.reduce, *split);
    body = simplified(substitute(body, {{v.var.get(), whole}}));
  }
  w.body = flatten_loads(body, w.vars());
  if (!at.empty()) w.offset = flat_offset(out->shape, at, w.vars());
  return w;
}

StmtRef store_result(const Work& w, const ExprRef& value) {
  ExprRef v = cast(w.out->dtype, value);
  return if_inside(w, w.offset ? store(w.out, {w.offset}, v) : store(w.out, {}, v));
}

StmtRef if_inside(const Work& w, const StmtRef& store) {
  return w.inside ? if_then(w.inside, store) : store;
}

StmtRef store_results(const std::vector<Work>& after,
                      const std::function<ExprRef(const ExprRef&)>& at) {
  std::vector<StmtRef> all;
  for (const Work& a : after) {
    const StmtRef one = store(a.out, {at(a.offset)}, at(a.body));
    all.push_back(a.inside ? if_then(at(a.inside), one) : one);
  }
  return seq(all);
}

namespace {

bool can_join(const Work& w, const Axis& outer, const Axis& inner) {
  if (used_outside_loads(w.body, outer.var) || used_outside_loads(w.body, inner.var)) return false;
  auto runs_on = [&](const ExprRef& offset) {
    auto a = coefficient(offset, outer.var, true), b = coefficient(offset, inner.var, true);
    return a && b && *a == *b * inner.extent;
  };
  for (const Load* l : loads_in(w.body)) {
    if (!l->indices.empty() && !runs_on(l->indices[0])) return false;
  }
  return !w.offset || runs_on(w.offset);
}

void replace_vars(Work* w, const VarMap& values) {
  std::vector<Ref<const Var>> vars = w->vars();
  w->body = flatten_loads(substitute(w->body, values), vars);
  if (w->inside) w->inside = substitute(w->inside, values);
  if (w->offset) {
    w->offset = flat_offset(w->out->shape, {substitute(w->offset, values)}, vars);
  }
}

void collapse_list(const std::vector<Work*>& works, std::vector<Axis> Work::*list) {
  auto replace_all = [&](const VarMap& values) {
    for (Work* w : works) replace_vars(w, values);
  };
  auto edit_all = [&](const std::function<void(std::vector<Axis>*)>& edit) {
    for (Work* w : works) {
      if (!(w->*list).empty()) edit(&(w->*list));
    }
  };
  const std::vector<Axis>& axes = works[0]->*list;
  VarMap zero;
  for (const Axis& a : axes) {
    if (a.extent.is_const(1)) zero[a.var.get()] = index(0);
  }
  if (!zero.empty()) {
    edit_all([](std::vector<Axis>* all) {
      std::erase_if(*all, [](const Axis& a) { return a.extent.is_const(1); });
    });
    replace_all(zero);
  }
  for (size_t i = axes.size(); i-- > 1;) {
    Axis outer = axes[i - 1], inner = axes[i];
    bool joins = std::all_of(works.begin(), works.end(),
                             [&](const Work* w) { return can_join(*w, outer, inner); });
    if (!joins) continue;
    // All accesses treat the pair as one: the inner variable takes the whole range.
    edit_all([&](std::vector<Axis>* all) {
      all->erase(all->begin() + static_cast<std::ptrdiff_t>(i - 1));
      (*all)[i - 1].extent = outer.extent * inner.extent;
    });
    replace_all({{outer.var.get(), index(0)}});
  }
}

}  // namespace

void collapse(const std::vector<Work*>& works) {
  collapse_list(works, &Work::axes);
  collapse_list(works, &Work::reduce);
}

int64_t lanes_of(const Work& w, const ScheduleOptions& options) {
  int64_t bytes = std::max(w.out->dtype.bytes(), w.accumulate.is_void() ? 1 : w.accumulate.bytes());
  for (const Load* l : loads_in(w.body)) {
    if (l->dtype.is_float()) bytes = std::max(bytes, l->dtype.bytes());
  }
  return vector_lanes(bytes, options.target);
}

VectorsAtOnce within_stack(const ExprRef& body, const Ref<const Var>& v, VectorsAtOnce most) {
  // A kernel that checks its accesses takes about ten times as much (kKernelStack is 64 KB).
  constexpr int64_t kMostBytes = 4096, kFewestLanes = 4;
  int64_t bytes = 0;  // per lane
  Coefficients along(v);
  post_order(body, [&](const ExprRef& e) {
    if (e->kind == ExprKind::kLoad) {
      for (const ExprRef& index : static_cast<const Load&>(*e).indices) {
        if (!along(index)) bytes += i64.bytes();
      }
    } else if (e->kind == ExprKind::kBinary && e->dtype.is_bool()) {
      const ExprRef& a = static_cast<const Binary&>(*e).a;
      if (a->dtype == i64 && depends_on(e, v)) bytes += i64.bytes();
    }
  });
  while (most.lanes > kFewestLanes && most.lanes * bytes > kMostBytes) most.lanes /= 2;
  if (bytes > 0) {
    most.vectors = std::clamp<int64_t>(kMostBytes / (most.lanes * bytes), 1, most.vectors);
  }
  return most;
}

StmtRef vector_range(const Ref<const Var>& v, const ExprRef& begin, const ExprRef& count,
                     int64_t lanes, const StmtRef& body,
                     const std::function<StmtRef(const ExprRef&)>& masked) {
  auto guarded = [&](const ExprRef& first, int64_t width, const ExprRef& end) {
    StmtRef inside = masked ? masked(end) : if_then(less(v, end), body);
    return for_loop(v, first, index(width), ForKind::kVector, inside);
  };
  auto whole = [&](const ExprRef& vectors) {
    auto block = var("block", i64);
    return for_loop(
        block, index(0), vectors, ForKind::kSerial,
        for_loop(v, sum(begin, scaled(block, lanes)), index(lanes), ForKind::kVector, body));
  };
  ExprRef end = sum(begin, count);
  if (auto n = as_int(count)) {
    int64_t left = *n % lanes;
    std::vector<StmtRef> all{whole(index(*n / lanes))};
    ExprRef first = sum(begin, index(*n - left));
    int64_t width = 1;
    while (width < left) width *= 2;
    if (left == 1) {
      all.push_back(let(v, first, body));
    } else if (left > 0 && width == left) {
      all.push_back(for_loop(v, first, index(width), ForKind::kVector, body));
    } else if (left > 0) {
      all.push_back(guarded(first, width, end));
    }
    return seq(all);
  }
  ExprRef vectors = quotient(count, index(lanes));
  ExprRef first = sum(begin, scaled(vectors, lanes));
  return seq({whole(vectors), if_then(less(first, end), guarded(first, lanes, end))});
}

StmtRef each_vector(const Ref<const Var>& lane, int64_t lanes, int64_t count,
                    const std::function<StmtRef(int64_t number)>& body) {
  std::vector<StmtRef> all;
  for (int64_t i = 0; i < count; ++i) {
    all.push_back(for_loop(lane, index(0), index(lanes), ForKind::kVector, body(i)));
  }
  return seq(all);
}

StmtRef combine_halves(
    const Ref<const Var>& lane, int64_t width, int64_t lanes,
    const std::function<StmtRef(const ExprRef& at, const ExprRef& other)>& combine) {
  std::vector<StmtRef> all;
  for (int64_t half = width / 2; half >= 1; half /= 2) {
    const int64_t n = std::min(half, lanes);
    for (int64_t first = 0; first < half; first += n) {
      const ExprRef at = sum(index(first), lane);
      all.push_back(for_loop(lane, index(0), index(n), n > 1 ? ForKind::kVector : ForKind::kSerial,
                             combine(at, sum(at, index(half)))));
    }
  }
  return seq(all);
}

std::vector<PartVector> part_vectors(int64_t count, int64_t lanes) {
  std::vector<PartVector> all;
  for (int64_t done = count / lanes * lanes, part = lanes / 2; done < count; part /= 2) {
    if (count - done < part) continue;
    all.push_back({done, part});
    done += part;
  }
  return all;
}

ExprRef hoist(const ExprRef& root, const std::vector<Ref<const Var>>& inner, Lets* lets) {
  // The parts that are always computed: not within a side of a Select.
  Seen always;
  std::vector<ExprRef> stack{root};
  while (!stack.empty()) {
    ExprRef e = std::move(stack.back());
    stack.pop_back();
    if (!always.insert(e.get()).second) continue;
    if (e->kind == ExprKind::kSelect) {
      stack.push_back(static_cast<const Select&>(*e).condition);
    } else {
      for (const ExprRef& o : operands(*e)) stack.push_back(o);
    }
  }
  std::unordered_set<const Var*> moving;
  for (const auto& v : inner) moving.insert(v.get());
  std::unordered_set<const Expr*> fixed, costly, may_fail;
  post_order(root, [&](const ExprRef& e) {
    bool is_fixed = e->kind != ExprKind::kVar || !moving.contains(static_cast<const Var*>(e.get()));
    bool keeps = is_costly(*e);
    bool fails = e->kind == ExprKind::kLoad || e->kind == ExprKind::kCheckedIndex;
    if (e->kind == ExprKind::kBinary) {
      const auto& b = static_cast<const Binary&>(*e);
      fails = can_fail(b.op, b.a->dtype);
    }
    for (const ExprRef& o : operands(*e)) {
      is_fixed = is_fixed && fixed.contains(o.get());
      keeps = keeps || costly.contains(o.get());
      fails = fails || may_fail.contains(o.get());
    }
    if (is_fixed) fixed.insert(e.get());
    if (keeps) costly.insert(e.get());
    if (fails) may_fail.insert(e.get());
  });
  // The largest such parts, from the root down.
  std::unordered_map<const Expr*, ExprRef> named;
  Seen seen;
  stack.push_back(root);
  while (!stack.empty()) {
    ExprRef e = std::move(stack.back());
    stack.pop_back();
    if (!seen.insert(e.get()).second) continue;
    bool safe = always.contains(e.get()) || !may_fail.contains(e.get());
    if (fixed.contains(e.get()) && costly.contains(e.get()) && safe) {
      auto v = var("fixed", e->dtype);
      lets->emplace_back(v, e);
      named[e.get()] = v;
      continue;
    }
    for (const ExprRef& o : operands(*e)) stack.push_back(o);
  }
  if (named.empty()) return root;
  // Rewrites by identity of the old nodes.
  std::unordered_map<const Expr*, ExprRef> made = named;
  Seen done;
  for (const auto& [old, v] : named) done.insert(old);
  post_order(
      root,
      [&](const ExprRef& e) {
        std::vector<ExprRef> ops = operands(*e);
        for (ExprRef& o : ops) o = made.at(o.get());
        made[e.get()] = with_operands(e, ops);
      },
      &done);
  return made.at(root.get());
}

StmtRef with_lets(const Lets& lets, StmtRef body) {
  for (size_t i = lets.size(); i-- > 0;) body = let(lets[i].first, lets[i].second, body);
  return body;
}

StmtRef outer_loops(std::span<const Axis> axes, bool parallel, StmtRef body) {
  ForKind first = parallel ? ForKind::kParallel : ForKind::kSerial;
  size_t n = axes.size();
  for (size_t i = n; i-- > (parallel && n >= 2 ? 2 : 0);) {
    body = for_loop(axes[i].var, index(0), dim_value(axes[i].extent),
                    i == 0 ? first : ForKind::kSerial, body);
  }
  if (!parallel || n < 2) return body;
  auto both = var("part", i64);
  ExprRef inner = dim_value(axes[1].extent);
  body = let(axes[1].var, binary(BinaryOp::kMod, both, inner), body);
  body = let(axes[0].var, quotient(both, inner), body);
  return for_loop(both, index(0), dim_value(axes[0].extent * axes[1].extent), ForKind::kParallel,
                  body);
}

}  // namespace tenon::loop

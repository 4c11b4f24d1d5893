// Reductions: vectors along the reduced axis with partial results per lane, or along an axis of the
// result (schedule_row_reduction.cc), whichever takes fewer loads. How a sum is split depends only
// on the shape.
#include <algorithm>
#include <cstdlib>

#include "loop/affine.h"
#include "loop/nest.h"
#include "loop/padding.h"
#include "loop/schedule_plain.h"
#include "loop/walk.h"

namespace tenon::loop {
namespace {

constexpr int64_t kUnroll = 4;  // vectors of partial results, to hide the latency of an addition

class ReductionSchedule {
 public:
  ReductionSchedule(Work w, const ScheduleOptions& options, bool parallel)
      : w_(std::move(w)), options_(options), lanes_(lanes_of(w_, options)), parallel_(parallel) {}

  StmtRef run() {
    if (w_.reduce.empty() || loads_in(w_.body).empty()) return plain();
    const bool along_result = runs_along_result(w_);
    if (!along_result && !is_contiguous(w_.reduce.back())) return plain();
    if (is_arg_reduction(w_.reduction)) {
      return schedule_arg_reduction(w_, options_, parallel_, along_result);
    }
    return along_result ? schedule_row_reduction(w_, options_, parallel_) : along_reduced_axis();
  }

 private:
  bool is_contiguous(const Axis& a) const {
    for (const Load* l : loads_in(w_.body)) {
      if (l->indices.empty()) continue;
      auto c = coefficient(l->indices[0], a.var);
      if (c && c->is_const(1)) return true;
    }
    return false;
  }

  ExprRef value() const { return cast(w_.accumulate, w_.body); }
  ExprRef start() const { return identity(w_.reduction, w_.accumulate); }
  ExprRef step(const ExprRef& acc, const ExprRef& v) const { return combine(w_.reduction, acc, v); }

  StmtRef plain() {
    if (is_arg_reduction(w_.reduction) && w_.reduce.empty()) {  // its one axis had extent 1
      return outer_loops(w_.axes, parallel_, store_result(w_, index(0)));
    }
    Stage s;
    s.body = w_.body;
    s.reduction = w_.reduction;
    s.accumulate = w_.accumulate;
    for (const Axis& a : w_.reduce) {
      s.reduce_axes.push_back(a.var);
      s.reduce_extents.push_back(a.extent);
    }
    StmtRef point =
        plain_reduction(s, [&](const ExprRef& result) { return store_result(w_, result); });
    return outer_loops(w_.axes, parallel_, point);
  }

  // ---- vectors along the last reduced axis

  StmtRef along_reduced_axis() {
    Axis k = w_.reduce.back();
    auto known = k.extent.as_const();
    const VectorsAtOnce at_once = within_stack(w_.body, k.var, {lanes_, kUnroll});
    int64_t lanes = at_once.lanes;
    while (known && lanes > *known && lanes > 2) lanes /= 2;
    const int64_t most = at_once.vectors == kUnroll ? kUnroll : 1;  // a power of two
    int64_t unroll = known && *known < 2 * most * lanes ? 1 : most;
    int64_t width = lanes * unroll;
    auto acc = buffer("acc", w_.accumulate, {Dim(width)});
    auto lane = var("lane", i64);
    auto fill = [&](int64_t first) {
      return for_loop(lane, index(first), index(lanes), ForKind::kVector,
                      store(acc, {lane}, start()));
    };
    std::vector<StmtRef> begin;
    for (int64_t u = 0; u < unroll; ++u) begin.push_back(fill(u * lanes));

    // Adds the body at k = first + lane to acc[place + lane].
    auto add = [&](const ExprRef& first, int64_t place, const ExprRef& end) {
      ExprRef at = sum(index(place), lane), element = sum(first, lane);
      ExprRef v = substitute(value(), {{k.var.get(), element}});
      if (end) v = select(less(element, end), v, start());
      return for_loop(lane, index(0), index(lanes), ForKind::kVector,
                      store(acc, {at}, step(load(acc, {at}), v)));
    };
    ExprRef extent = dim_value(k.extent);
    auto block = var("block", i64), tail = var("block", i64);
    ExprRef blocks = quotient(extent, index(width));
    std::vector<StmtRef> wide;
    for (int64_t u = 0; u < unroll; ++u) {
      wide.push_back(add(sum(scaled(block, width), index(u * lanes)), u * lanes, nullptr));
    }
    std::vector<StmtRef> inner{for_loop(block, index(0), blocks, ForKind::kSerial, seq(wide))};
    ExprRef done = scaled(blocks, width);
    ExprRef vectors = quotient(difference(extent, done), index(lanes));
    if (unroll > 1) {
      inner.push_back(for_loop(tail, index(0), vectors, ForKind::kSerial,
                               add(sum(done, scaled(tail, lanes)), 0, nullptr)));
    }
    ExprRef first = sum(done, unroll > 1 ? scaled(vectors, lanes) : index(0));
    inner.push_back(if_then(less(first, extent), add(first, 0, extent)));

    const StmtRef body =
        outer_loops(std::span(w_.reduce).first(w_.reduce.size() - 1), false, seq(inner));
    const StmtRef combined =
        combine_halves(lane, width, lanes, [&](const auto& at, const auto& other) {
          return store(acc, {at}, step(load(acc, {at}), load(acc, {other})));
        });
    const StmtRef finish = seq({combined, store_result(w_, load(acc, {index(0)}))});
    StmtRef point = alloc(acc, seq({seq(begin), body, finish}));
    return outer_loops(w_.axes, parallel_, point);
  }

  Work w_;
  const ScheduleOptions& options_;
  int64_t lanes_;
  bool parallel_;
};

// What choosing between axes assumes: of a vector, how far apart elements may be for a few loads to
// get all, and what combining its elements costs; and of unknown sizes.
constexpr int64_t kLanes = 16, kNearStride = 4, kLarge = 64;
constexpr double kCombination = 4;

// The loads of a vector whose elements are `stride` apart.
int64_t loads_of(const std::optional<Dim>& stride) {
  const int64_t known = stride ? stride->as_const().value_or(kLanes) : kLanes;
  const bool is_near = known >= -kNearStride && known <= kNearStride;
  return is_near ? std::max<int64_t>(std::abs(known), 1) : kLanes;
}

}  // namespace

bool runs_along_result(const Work& w) {
  if (w.axes.empty() || w.reduce.empty()) return false;
  const Axis &x = w.axes.back(), &k = w.reduce.back();
  double along_result = 0, along_reduction = 0;  // the loads of a vector, in those of neighbours
  bool any = false;                              // along the result
  for (const Load* l : loads_in(w.body)) {
    if (l->indices.empty()) continue;
    const auto a = coefficient(l->indices[0], x.var);
    any |= a && !a->is_const(0) && loads_of(a) < kLanes;
    along_result += static_cast<double>(loads_of(a));
    // Along the innermost summed axis on which it depends.
    std::optional<Dim> b = Dim(0);
    for (size_t i = w.reduce.size(); i-- > 0 && b && b->is_const(0);) {
      b = coefficient(l->indices[0], w.reduce[i].var);
    }
    along_reduction += static_cast<double>(loads_of(b));
  }
  double elements = 1;
  for (const Axis& axis : w.reduce)
    elements *= static_cast<double>(axis.extent.as_const().value_or(kLarge));
  const auto lanes_used = [](const Axis& axis) {
    return static_cast<double>(
        std::clamp<int64_t>(axis.extent.as_const().value_or(kLarge), 1, kLanes));
  };
  // Per result; partial results of lanes must be combined, too.
  along_result *= elements / lanes_used(x);
  along_reduction = along_reduction * elements / lanes_used(k) + kCombination;
  return any && along_result < along_reduction;
}

StmtRef schedule_reduction(Work w, const ScheduleOptions& options, bool parallel) {
  collapse(&w);
  if (w.padding_is_skippable) w.body = with_padding_outside(w.body);
  return ReductionSchedule(std::move(w), options, parallel).run();
}

}  // namespace tenon::loop

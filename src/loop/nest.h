// The parts that optimised schedules are put together from. Private to the schedule_*.cc files.
#pragma once

#include <functional>
#include <vector>

#include "loop/affine.h"
#include "loop/schedule.h"
#include "loop/walk.h"

namespace tenon::loop {

using Axis = VarRange;

// One stage (or the pointwise rest of one) as a schedule sees it: all loads are flat, and variables
// other than the axes are bound by loops around it.
struct Work {
  std::vector<Axis> axes;    // of the result, outermost first
  std::vector<Axis> reduce;  // of a reduction
  Reduction reduction = Reduction::kNone;
  DataType accumulate;
  bool padding_is_skippable = false;  // as in Stage
  ExprRef body;
  Ref<const Buffer> out;
  ExprRef offset;  // flat; none for a result of rank 0
  VarMap split;    // axes of the stage that are now two, in terms of these

  std::vector<Ref<const Var>> vars() const;
};

// The stage with its first axes replaced by the variables `leading`, writing `out` (whose shape
// lacks them, or the stage's own buffer), after `rewrite` of its body.
Work work_of(const Stage& stage, const std::vector<Ref<const Var>>& leading,
             const Ref<const Buffer>& out, const std::function<ExprRef(const ExprRef&)>& rewrite);

StmtRef store_result(const Work& w, const ExprRef& value);

// Drops axes of extent 1 and joins neighbours that every access runs through as if they were one.
// The works share their axes (and the first alone may reduce).
void collapse(const std::vector<Work*>& works);
inline void collapse(Work* w) {
  collapse(std::vector<Work*>{w});
}

// Lanes of a vector of the work's elements.
int64_t lanes_of(const Work& w, const ScheduleOptions& options);

ExprRef sum(const ExprRef& a, const ExprRef& b);
ExprRef difference(const ExprRef& a, const ExprRef& b);
ExprRef scaled(const ExprRef& a, int64_t factor);
ExprRef less(const ExprRef& a, const ExprRef& b);
ExprRef smaller(const ExprRef& a, const ExprRef& b);

// v runs over [begin, begin + count) in vectors of `lanes`; `body` uses v. What is left over is one
// vector more, where `body` runs under the condition that v is in the range; or, where `masked` is
// given, that statement, which sees to it by itself (it is given the end of the range).
StmtRef vector_range(const Ref<const Var>& v, const ExprRef& begin, const ExprRef& count,
                     int64_t lanes, const StmtRef& body,
                     const std::function<StmtRef(const ExprRef& end)>& masked = nullptr);

// Names the costly parts of `e` that don't depend on `inner` before the loops over those: adds to
// `lets` and returns what is left of `e`. Parts that may fail are taken only where `e` always
// computes them.
using Lets = std::vector<std::pair<Ref<const Var>, ExprRef>>;
ExprRef hoist(const ExprRef& e, const std::vector<Ref<const Var>>& inner, Lets* lets);
StmtRef with_lets(const Lets& lets, StmtRef body);

// Loops over `axes` around `body`, the outermost parallel if asked (the two outermost joined, so
// that a small first one doesn't leave threads idle).
StmtRef outer_loops(const std::vector<Axis>& axes, bool parallel, StmtRef body);

// ---- schedules of one piece of work; with `parallel` their outermost loop may be parallel

StmtRef schedule_map(Work w, const ScheduleOptions& options, bool parallel);
// Do vectors of a reduction run along the last axis of its result (rather than along the last
// reduced one)? Whichever has fewer operands that lie across it.
bool runs_along_result(const Work& w);
StmtRef schedule_reduction(Work w, const ScheduleOptions& options, bool parallel);

// A sum of products of two operands, each with axes of the result that the other lacks: a matrix
// product, a convolution. `after` are stages that turn the sum at one point, the variable `sum`,
// into results at the same point; they share w's axes. Null if `w` is none, or too small to gain.
StmtRef schedule_contraction(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                             const ScheduleOptions& options);
bool is_contraction(const Stage& s);

}  // namespace tenon::loop

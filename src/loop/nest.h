// Building blocks of optimised schedules. Private to the schedule_*.cc files.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "loop/affine.h"
#include "loop/schedule.h"
#include "loop/walk.h"

namespace tenon::loop {

using Axis = VarRange;

// One stage (or the pointwise rest of one) as a schedule sees it: all loads are flat, and variables
// other than the axes are bound by enclosing loops.
struct Work {
  std::vector<Axis> axes;    // of the result, outermost first
  std::vector<Axis> reduce;  // of a reduction
  Reduction reduction = Reduction::kNone;
  DataType accumulate;
  bool padding_is_skippable = false, may_use_winograd = false;  // as in Stage
  ExprRef body;
  Ref<const Buffer> out;
  ExprRef offset;  // flat; null for a result of rank 0
  VarMap split;    // split axes of the stage, in terms of the new axes
  // Whether the point is one of the result's: false for the last columns of a split that doesn't
  // divide the axis, which are computed but not stored. Null if all are.
  ExprRef inside;

  std::vector<Ref<const Var>> vars() const;
};

// The stage with its first axes replaced by the variables `leading`, writing `out` (either a buffer
// without those axes or the stage's own buffer), after applying `rewrite` to its body.
Work work_of(const Stage& stage, const std::vector<Ref<const Var>>& leading,
             const Ref<const Buffer>& out, const std::function<ExprRef(const ExprRef&)>& rewrite);

// Stores the result at the point if that is inside.
StmtRef store_result(const Work& w, const ExprRef& value);
// `store` if the point is inside.
StmtRef if_inside(const Work& w, const StmtRef& store);
// Stores what `after` (see schedule_contraction) makes of a sum; `at` gives an expression's value
// at the point, if that isn't given by the works' variables.
StmtRef store_results(
    const std::vector<Work>& after,
    const std::function<ExprRef(const ExprRef&)>& at = [](const ExprRef& e) { return e; });

// Drops axes of extent 1 and joins adjacent axes that every access treats as one. The works share
// their axes, and only the first may reduce.
void collapse(const std::vector<Work*>& works);
inline void collapse(Work* w) {
  collapse(std::vector<Work*>{w});
}
inline void collapse(Work* w, std::vector<Work>* after) {
  std::vector<Work*> works{w};
  for (Work& a : *after) works.push_back(&a);
  collapse(works);
}

// The number of lanes of a vector of the work's elements.
int64_t lanes_of(const Work& w, const ScheduleOptions& options);

// How many vectors of how many lanes may be computed at once along `v`: fewer than given if the
// body has many integers that differ between lanes, such as places at no known distance from each
// other. They have 64 bits each, and those that don't fit into registers need stack.
struct VectorsAtOnce {
  int64_t lanes, vectors;
};
VectorsAtOnce within_stack(const ExprRef& body, const Ref<const Var>& v, VectorsAtOnce most);

ExprRef sum(const ExprRef& a, const ExprRef& b);
ExprRef difference(const ExprRef& a, const ExprRef& b);
ExprRef scaled(const ExprRef& a, int64_t factor);
ExprRef quotient(const ExprRef& a, const ExprRef& b);
ExprRef less(const ExprRef& a, const ExprRef& b);
ExprRef smaller(const ExprRef& a, const ExprRef& b);

// v runs over [begin, begin + count) in vectors of `lanes`; `body` uses v. The remainder is one
// more vector, in which `body` runs under the condition that v is in range; if `masked` is given,
// it is used for the remainder instead, gets the end of the range, and must check it itself.
StmtRef vector_range(const Ref<const Var>& v, const ExprRef& begin, const ExprRef& count,
                     int64_t lanes, const StmtRef& body,
                     const std::function<StmtRef(const ExprRef& end)>& masked = nullptr);

// `count` vectors of `lanes`, written out: body(i) is what each `lane` of vector i does.
StmtRef each_vector(const Ref<const Var>& lane, int64_t lanes, int64_t count,
                    const std::function<StmtRef(int64_t number)>& body);

// Combines partial results at [0, width), a power of two, until one is left at 0: combine(at,
// other) is what each `lane` does with two of them.
StmtRef combine_halves(
    const Ref<const Var>& lane, int64_t width, int64_t lanes,
    const std::function<StmtRef(const ExprRef& at, const ExprRef& other)>& combine);

// Vectors for the last elements of `count`, which don't fill one of `lanes`: of half the lanes, a
// quarter, and so on.
struct PartVector {
  int64_t first, lanes;
};
std::vector<PartVector> part_vectors(int64_t count, int64_t lanes);

// Hoists the costly parts of `e` that don't depend on `inner` out of the loops over those: adds
// them to `lets` and returns the rest of `e`. Parts that may fail are hoisted only if `e` always
// computes them.
using Lets = std::vector<std::pair<Ref<const Var>, ExprRef>>;
ExprRef hoist(const ExprRef& e, const std::vector<Ref<const Var>>& inner, Lets* lets);
StmtRef with_lets(const Lets& lets, StmtRef body);

// Loops over `axes` around `body`, optionally with a parallel outermost loop (the two outermost are
// joined, so that a small first axis doesn't leave threads idle).
StmtRef outer_loops(std::span<const Axis> axes, bool parallel, StmtRef body);

// ---- schedules of a Work; with `parallel`, their outermost loop may be parallel

StmtRef schedule_map(Work w, const ScheduleOptions& options, bool parallel);
// Whether a reduction's vectors run along the last axis of the result instead of the last reduced
// one: whichever takes fewer loads.
bool runs_along_result(const Work& w);
StmtRef schedule_reduction(Work w, const ScheduleOptions& options, bool parallel);
// A reduction whose vectors run along the last axis of the result.
StmtRef schedule_row_reduction(Work w, const ScheduleOptions& options, bool parallel);
// An arg reduction over one axis, which with `along_result` has vectors along the last axis of the
// result.
StmtRef schedule_arg_reduction(Work w, const ScheduleOptions& options, bool parallel,
                               bool along_result);

// A sum of products of two operands, each with axes of the result that the other lacks: a matrix
// product or a convolution. `after` are stages that turn the sum at a point, the variable `sum`,
// into results at the same point; they share w's axes, and there is at least one. Null if `w` isn't
// such a sum or is too small to gain.
StmtRef schedule_contraction(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                             const ScheduleOptions& options, bool parallel);
bool is_contraction(const Stage& s);
// A sum of products over windows that slide along the last axis but one, each channel with weights
// of its own: of numbers, or dot products of bytes in words. `after` as above; `in_bounds` as in
// KernelInterface. Null if `w` isn't such a sum, or is too large to be written out for each place.
StmtRef schedule_windows(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                         const ScheduleOptions& options, bool in_bounds);
StmtRef schedule_word_windows(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                              const ScheduleOptions& options);
// A convolution by Winograd's algorithm; `after` as above. Null where there is no plan
// for it (winograd_plan.h).
StmtRef schedule_winograd(const Work& w, const Ref<const Var>& sum, const std::vector<Work>& after,
                          const ScheduleOptions& options, bool in_bounds);

}  // namespace tenon::loop

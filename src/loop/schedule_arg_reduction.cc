// The place of the greatest or least element: each lane keeps its own best and the place of that;
// then, the lanes' are compared.
#include "loop/nest.h"
#include "loop/schedule_plain.h"
#include "loop/walk.h"

namespace tenon::loop {
namespace {

constexpr int64_t kUnroll = 4;  // vectors at once, to hide the latency of a comparison

class ArgReductionSchedule {
 public:
  ArgReductionSchedule(Work w, const ScheduleOptions& options, bool parallel)
      : w_(std::move(w)),
        k_(w_.reduce.back()),
        lanes_(vector_lanes(w_.body->dtype.bytes(), options.target)),
        parallel_(parallel) {
    for (const Ref<const Var>& v : {k_.var, w_.axes.empty() ? k_.var : w_.axes.back().var}) {
      lanes_ = within_stack(w_.body, v, {lanes_, 1}).lanes;
    }
  }

  // Vectors along the last axis of the result: each lane has a result of its own.
  StmtRef along_result() {
    const Axis x = w_.axes.back();
    const std::vector<Axis> outer(w_.axes.begin(), w_.axes.end() - 1);
    const auto lane = var("lane", i64);
    const auto block = [&](const ExprRef& first, int64_t lanes, int64_t vectors,
                           const ExprRef& end) {
      const Best best(w_.body->dtype, lanes * vectors);
      const auto each = [&](const std::function<StmtRef(const ExprRef& at)>& body) {
        return each_vector(lane, lanes, vectors, [&](int64_t i) {
          const ExprRef at = sum(index(i * lanes), lane);
          const StmtRef inside = let(x.var, sum(first, at), body(at));
          return end ? if_then(less(sum(first, at), end), inside) : inside;
        });
      };
      const StmtRef step = each([&](const ExprRef& at) {
        return take_if_better(best, at, k_.var, binary(BinaryOp::kEq, k_.var, index(0)));
      });
      const StmtRef begin = each(
          [&](const ExprRef& at) { return best.store_at(at, zero(w_.body->dtype), index(0)); });
      const StmtRef finish =
          each([&](const ExprRef& at) { return store_result(w_, load(best.places, {at})); });
      return best.around(
          seq({begin, for_loop(k_.var, index(0), dim_value(k_.extent), ForKind::kSerial, step),
               finish}));
    };
    const ExprRef extent = dim_value(x.extent);
    const int64_t width = lanes_ * kUnroll;
    const auto number = var("block", i64), rest = var("block", i64);
    const bool here = parallel_ && outer.empty();
    const ExprRef wide = quotient(extent, index(width)), done = scaled(wide, width);
    const ExprRef vectors = quotient(difference(extent, done), index(lanes_));
    const ExprRef last = sum(done, scaled(vectors, lanes_));
    const StmtRef row =
        seq({for_loop(number, index(0), wide, here ? ForKind::kParallel : ForKind::kSerial,
                      block(scaled(number, width), lanes_, kUnroll, nullptr)),
             for_loop(rest, index(0), vectors, ForKind::kSerial,
                      block(sum(done, scaled(rest, lanes_)), lanes_, 1, nullptr)),
             if_then(less(last, extent), block(last, lanes_, 1, extent))});
    return outer_loops(outer, parallel_ && !here, row);
  }

  // Vectors along the reduced axis. A lane begins with the first element of all, which it keeps
  // if it finds no better.
  StmtRef along_reduced() {
    const ExprRef extent = dim_value(k_.extent);
    const int64_t unroll = unroll_of(k_.extent), width = lanes_ * unroll;
    const Best best(w_.body->dtype, width);
    const auto lane = var("lane", i64), block = var("block", i64), tail = var("block", i64);
    const auto first_value = var("first", w_.body->dtype);
    const auto step = [&](const ExprRef& at, const ExprRef& k) {
      return let(k_.var, k, take_if_better(best, at, k_.var, nullptr));
    };
    const StmtRef begin = each_vector(lane, lanes_, unroll, [&](int64_t i) {
      return best.store_at(sum(index(i * lanes_), lane), first_value, index(0));
    });
    const ExprRef blocks = quotient(extent, index(width)), done = scaled(blocks, width);
    const ExprRef vectors = quotient(difference(extent, done), index(lanes_));
    const ExprRef last = sum(done, scaled(vectors, lanes_));
    const StmtRef wide = each_vector(lane, lanes_, unroll, [&](int64_t i) {
      const ExprRef at = sum(index(i * lanes_), lane);
      return step(at, sum(scaled(block, width), at));
    });
    const ExprRef in_tail = sum(sum(done, scaled(tail, lanes_)), lane), left = sum(last, lane);
    std::vector<StmtRef> all{
        begin, for_loop(block, index(0), blocks, ForKind::kSerial, wide),
        for_loop(tail, index(0), vectors, ForKind::kSerial,
                 for_loop(lane, index(0), index(lanes_), ForKind::kVector, step(lane, in_tail))),
        if_then(less(last, extent), for_loop(lane, index(0), index(lanes_), ForKind::kVector,
                                             if_then(less(left, extent), step(lane, left))))};
    all.push_back(combine_halves(lane, width, lanes_, [&](const auto& at, const auto& other) {
      return take_better_of(best, at, other);
    }));
    all.push_back(store_result(w_, load(best.places, {index(0)})));
    const StmtRef some =
        let(first_value, substitute(w_.body, {{k_.var.get(), index(0)}}), best.around(seq(all)));
    const StmtRef none = store_result(w_, index(0));
    return outer_loops(w_.axes, parallel_, if_then(less(index(0), extent), some, none));
  }

 private:
  // The best elements so far, and their places.
  struct Best {
    Best(DataType t, int64_t width)
        : values(buffer("best", t, {Dim(width)})), places(buffer("places", i64, {Dim(width)})) {}
    StmtRef store_at(const ExprRef& at, const ExprRef& value, const ExprRef& place) const {
      return seq({store(values, {at}, value), store(places, {at}, place)});
    }
    StmtRef around(const StmtRef& body) const { return alloc(values, alloc(places, body)); }

    Ref<const Buffer> values, places;
  };

  // Few vectors if the axis is known to be short: those that found nothing are compared, too.
  int64_t unroll_of(const Dim& extent) const {
    const auto known = extent.as_const();
    return known && *known < 2 * kUnroll * lanes_ ? 1 : kUnroll;
  }

  // Takes the element at k, for `always` or if it replaces the best at `at`.
  StmtRef take_if_better(const Best& best, const ExprRef& at, const ExprRef& k,
                         const ExprRef& always) const {
    const auto value = var("value", w_.body->dtype), old = var("old", w_.body->dtype);
    const auto takes = var("takes", boolean);
    ExprRef better = replaces(w_.reduction, value, old);
    if (always) better = binary(BinaryOp::kOr, always, better);
    const StmtRef choose =
        best.store_at(at, select(takes, value, old), select(takes, k, load(best.places, {at})));
    return let(value, w_.body, let(old, load(best.values, {at}), let(takes, better, choose)));
  }

  // Of equals, which are at places in any order, the first or last remains.
  StmtRef take_better_of(const Best& best, const ExprRef& at, const ExprRef& other) const {
    const bool last = finds_last(w_.reduction);
    const auto a = var("a", w_.body->dtype), b = var("b", w_.body->dtype);
    const auto place_a = var("place", i64), place_b = var("place", i64),
               takes = var("takes", boolean);
    const Reduction strictly =
        finds_greatest(w_.reduction) ? Reduction::kArgMaxFirst : Reduction::kArgMinFirst;
    const ExprRef nearer = last ? less(place_a, place_b) : less(place_b, place_a);
    const ExprRef equal = unary(UnaryOp::kNot, replaces(strictly, a, b));
    const ExprRef better =
        binary(BinaryOp::kOr, replaces(strictly, b, a), binary(BinaryOp::kAnd, equal, nearer));
    const StmtRef choose = best.store_at(at, select(takes, b, a), select(takes, place_b, place_a));
    return let(a, load(best.values, {at}),
               let(b, load(best.values, {other}),
                   let(place_a, load(best.places, {at}),
                       let(place_b, load(best.places, {other}), let(takes, better, choose)))));
  }

  Work w_;
  Axis k_;
  int64_t lanes_;
  bool parallel_;
};

}  // namespace

StmtRef schedule_arg_reduction(Work w, const ScheduleOptions& options, bool parallel,
                               bool along_result) {
  ArgReductionSchedule schedule(std::move(w), options, parallel);
  return along_result ? schedule.along_result() : schedule.along_reduced();
}

}  // namespace tenon::loop

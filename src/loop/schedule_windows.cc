// Sums of products over windows that slide along a row, each channel with weights of its own:
// depthwise convolutions.
//
//   result[.., p, c] = sum over r, k of x[.., p * stride + k, .., c] * weights[r, k, c]
//
// A tile of neighbouring places is accumulated in registers, so that a vector of weights is read
// once for all of them, and an element of x once for all windows that it is in. Of a row of known
// size, the first and the last tile leave out what is padding. Otherwise, places whose windows
// reach into padding are computed one by one, as reductions are.
#include <algorithm>
#include <utility>

#include "loop/affine.h"
#include "loop/nest.h"
#include "loop/padding.h"
#include "loop/walk.h"
#include "support/rounding.h"

namespace tenon::loop {
namespace {

constexpr int64_t kMostTries = 64;  // numbers of tiles; a file may give a row any size
constexpr int64_t kMoreAtEnds = 2;  // places of a tile at an end of a row
// Limits for all tiles together: the nodes of the expressions that they write out, and the places
// of a step where each access is checked, which makes several basic blocks of every product.
constexpr int64_t kMostNodes = 1 << 16, kMostCheckedProducts = 144;

class WindowSchedule {
 public:
  WindowSchedule(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                 const ScheduleOptions& options, bool in_bounds)
      : w_(std::move(w)),
        sum_(sum),
        after_(std::move(after)),
        options_(options),
        in_bounds_(in_bounds) {}

  StmtRef run() {
    collapse(&w_, &after_);
    if (w_.padding_is_skippable) w_.body = with_padding_outside(w_.body);
    if (!is_window() || !find_inner_places()) return nullptr;
    Work inner = w_;
    inner.body = inner_body_ = with_conditions(guarded_, w_);
    ranges_ = restricted_ranges(inner, channel_.var.get(), &inner_body_);
    const std::vector<Axis> outer(w_.axes.begin(), w_.axes.end() - 2);
    return outer_loops(outer, true, row(outer.empty() ? ForKind::kParallel : ForKind::kSerial));
  }

 private:
  bool is_window() {
    if (w_.reduction != Reduction::kSum || w_.axes.size() < 2 || w_.reduce.empty() || w_.inside) {
      return false;
    }
    guarded_ = guarded(w_);
    const ExprRef& body = guarded_.body;
    if (body->kind != ExprKind::kBinary || body->dtype != w_.accumulate ||
        static_cast<const Binary&>(*body).op != BinaryOp::kMul) {
      return false;
    }
    if (any_can_fail(body)) return false;  // a check in every product would be too much code
    place_ = w_.axes[w_.axes.size() - 2];
    channel_ = w_.axes.back();
    step_ = w_.reduce.back();
    lanes_ = lanes_of(w_, options_);
    const auto channels = channel_.extent.as_const(), steps = step_.extent.as_const();
    if (!channels || !steps) return false;
    most_places_ = places_of_windows(w_.accumulate, *channels, *steps, options_.target);
    if (most_places_ == 0 || !limit_places(*channels, *steps)) return false;
    bool slides = false, shared = false;
    for (const Load* l : loads_in(body)) {
      if (l->indices.size() != 1) return false;
      const ExprRef& at = l->indices[0];
      const auto c = coefficient(at, channel_.var);
      if (!c || !(c->is_const(0) || c->is_const(1))) return false;
      if (!depends_on(at, step_.var)) continue;
      (depends_on(at, place_.var) ? slides : shared) |= c->is_const(1);
    }
    return slides && shared;
  }

  // Lowers the number of places of a tile until the tile isn't too large, written out; false if too
  // few are left.
  bool limit_places(int64_t channels, int64_t steps) {
    const int64_t tiles = tiles_of_windows(w_.accumulate, channels, options_.target);
    int64_t nodes = steps * count_nodes(guarded_.body, kMostNodes);
    for (const Work& a : after_) {
      nodes += count_nodes(a.body, kMostNodes) + count_nodes(a.offset, kMostNodes);
    }
    most_places_ = std::min(most_places_, kMostNodes / (tiles * nodes));
    if (!in_bounds_) most_places_ = std::min(most_places_, kMostCheckedProducts / (tiles * steps));
    return most_places_ >= kFewestPlaces;
  }

  // The places whose windows lie within x. Of conditions, those on the row alone are left.
  bool find_inner_places() {
    std::vector<ExprRef> left, bounding;
    for (const ExprRef& condition : guarded_.conditions) {
      // One may guard what another loads, but here all are computed.
      if (!loads_in(condition).empty()) return false;
      const bool bounds = depends_on(condition, place_.var) || depends_on(condition, step_.var);
      if (bounds && depends_on(condition, channel_.var)) return false;
      (bounds ? bounding : left).push_back(condition);
    }
    auto inner = inner_places(w_, place_, bounding);
    if (!inner) return false;
    inner_ = std::move(*inner);
    guarded_.conditions = std::move(left);
    return true;
  }

  StmtRef row(ForKind loop) const {
    const auto count = place_.extent.as_const();
    if (!count || !knows_padding()) return row_of_any_size(loop);
    if (*count <= most_places_ + kMoreAtEnds) return places(index(0), *count);
    // As many tiles of the same size as leave few places over, which the first and the last have.
    const int64_t fewest = ceil_div(*count, most_places_);
    for (int64_t tiles = fewest; tiles < fewest + kMostTries; ++tiles) {
      const int64_t size = *count / tiles, over = *count % tiles;
      if (size < kFewestPlaces) break;
      if (over > 2 * kMoreAtEnds) continue;
      const int64_t first = size + over / 2, last = size + over - over / 2;
      const auto begin = as_int(inner_.range.begin), end = as_int(inner_.range.end);
      if (!begin || !end || *begin > first || *end < *count - last) break;
      auto tile = var("tile", i64);
      return seq({places(index(0), first),
                  for_loop(tile, index(0), index(tiles - 2), loop,
                           places(sum(index(first), scaled(tile, size)), size)),
                  places(index(*count - last), last)});
    }
    return row_of_any_size(loop);
  }

  // Tiles of inner places, and all others one by one.
  StmtRef row_of_any_size(ForKind loop) const {
    auto tile = var("tile", i64), at = var("at", i64);
    const int64_t size = most_places_;
    const ExprRef tiles = quotient(difference(inner_.range.end, inner_.range.begin), index(size));
    const ExprRef computed = scaled(tiles, size);
    const ExprRef place = select(less(at, inner_.range.begin), at, sum(at, computed));
    return seq({for_loop(tile, index(0), tiles, loop,
                         places(sum(inner_.range.begin, scaled(tile, size)), size)),
                for_loop(at, index(0), difference(dim_value(place_.extent), computed),
                         ForKind::kSerial, let(place_.var, place, one_place()))});
  }

  StmtRef one_place() const {
    Work one = w_;
    one.axes = {channel_};
    one.out = buffer("sums", w_.accumulate, {channel_.extent});
    one.offset = channel_.var;
    const StmtRef sums = schedule_reduction(one, options_, false);
    const StmtRef rest =
        vector_range(channel_.var, index(0), dim_value(channel_.extent), lanes_,
                     let(sum_, load(one.out, {channel_.var}), store_results(after_)));
    return alloc(one.out, seq({sums, rest}));
  }

  // All channels of `count` neighbouring places.
  StmtRef places(const ExprRef& first, int64_t count) const {
    const int64_t channels = *channel_.extent.as_const(), vectors = channels / lanes_;
    auto block = var("block", i64);
    std::vector<StmtRef> parts{for_loop(block, index(0), index(vectors), ForKind::kSerial,
                                        tile(first, count, scaled(block, lanes_), lanes_))};
    for (const PartVector& part : part_vectors(channels, lanes_)) {
      parts.push_back(tile(first, count, index(part.first), part.lanes));
    }
    return seq(parts);
  }

  std::optional<int64_t> known_at(const ExprRef& f, const ExprRef& place, int64_t step) const {
    return as_int(substitute(f, {{place_.var.get(), place}, {step_.var.get(), index(step)}}));
  }
  // Whether a known place, at a step of the sum, is outside x. An unknown one is an inner place.
  bool is_padding(const ExprRef& place, int64_t step) const {
    return std::ranges::any_of(inner_.not_negative, [&](const ExprRef& f) {
      const auto known = known_at(f, place, step);
      return known && *known < 0;
    });
  }
  // Whether that depends on nothing else.
  bool knows_padding() const {
    return std::ranges::all_of(inner_.not_negative, [&](const ExprRef& f) {
      return known_at(f, index(0), 0).has_value();
    });
  }

  StmtRef tile(const ExprRef& first, int64_t count, const ExprRef& channel, int64_t lanes) const {
    auto acc = buffer("acc", w_.accumulate, {Dim(count * lanes)});
    auto lane = var("lane", i64);
    const auto in_acc = [&](int64_t i) { return sum(index(i * lanes), lane); };
    const auto each_place = [&](const std::function<StmtRef(int64_t i)>& body) {
      return each_vector(lane, lanes, count, body);
    };
    const auto at = [&](const ExprRef& e, int64_t i) {
      return substitute(
          e, {{place_.var.get(), sum(first, index(i))}, {channel_.var.get(), sum(channel, lane)}});
    };
    std::vector<StmtRef> steps;
    for (int64_t k = 0; k < *step_.extent.as_const(); ++k) {
      const ExprRef product = substitute(inner_body_, {{step_.var.get(), index(k)}});
      steps.push_back(each_place([&](int64_t i) {
        if (is_padding(sum(first, index(i)), k)) return seq({});
        const ExprRef value = cast(w_.accumulate, at(product, i));
        return store(acc, {in_acc(i)}, sum(load(acc, {in_acc(i)}), value));
      }));
    }
    const StmtRef sums =
        loops_within(std::span(w_.reduce).first(w_.reduce.size() - 1), ranges_, seq(steps));
    const StmtRef clear = each_place([&](int64_t i) {
      return store(acc, {in_acc(i)}, identity(Reduction::kSum, w_.accumulate));
    });
    const StmtRef finish = each_place([&](int64_t i) {
      return let(sum_, load(acc, {in_acc(i)}),
                 store_results(after_, [&](const ExprRef& e) { return at(e, i); }));
    });
    return alloc(acc, seq({clear, sums, finish}));
  }

  Work w_;
  Ref<const Var> sum_;
  std::vector<Work> after_;
  const ScheduleOptions& options_;
  const bool in_bounds_;

  Axis place_, channel_, step_;
  Guarded guarded_;
  int64_t lanes_ = 0, most_places_ = 0;
  InnerPlaces inner_;          // whose windows lie within x
  ExprRef inner_body_;         // of inner places,
  std::vector<Range> ranges_;  // within these of the reduced variables
};

}  // namespace

StmtRef schedule_windows(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                         const ScheduleOptions& options, bool in_bounds) {
  return WindowSchedule(std::move(w), sum, std::move(after), options, in_bounds).run();
}

}  // namespace tenon::loop

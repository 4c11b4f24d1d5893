// Convolutions of 3 by 3 with stride 1 by Winograd's algorithm (support/winograd_transforms.h).
//
//   transform the weights to points       parallel; or a panel at a time, before its products
//   for each block of tiles of the image  parallel, or its parts are
//     transform the window of each tile
//     for each point: products [tiles, channels] x [channels, filters]
//     for each tile: transform the products to sums; what follows the sums
//
// A point's products are a matrix product as any other (schedule_contraction.cc). An infinity or
// NaN would spread over its tile, so a tile whose sums aren't all finite is computed by the
// definition.
#include <algorithm>
#include <utility>

#include "loop/affine.h"
#include "loop/nest.h"
#include "loop/walk.h"
#include "loop/winograd_plan.h"
#include "support/error.h"
#include "support/winograd_transforms.h"

namespace tenon::loop {
namespace {

// An expression in the transforms; their constants are of its type.
class Term {
 public:
  Term() = default;
  explicit Term(ExprRef e) : e_(std::move(e)) {}
  const ExprRef& expr() const { return e_; }
  friend Term operator+(const Term& a, const Term& b) {
    return Term(binary(BinaryOp::kAdd, a.e_, b.e_));
  }
  friend Term operator-(const Term& a, const Term& b) {
    return Term(binary(BinaryOp::kSub, a.e_, b.e_));
  }
  friend Term operator*(const Term& a, const Term& b) {
    return Term(binary(BinaryOp::kMul, a.e_, b.e_));
  }

 private:
  ExprRef e_;
};
template <const DataType& kType>
struct ConstantOf : Term {
  explicit ConstantOf(double value) : Term(literal(kType, value)) {}
};

// One dimension of a transform: `to` results of `from` terms.
struct Transform {
  DataType dtype;
  int64_t from, to;
  void (*apply)(const Term* terms, int step, Term* results, int results_step);

  std::vector<Term> of(const std::vector<Term>& terms) const {
    std::vector<Term> results(static_cast<size_t>(to));
    apply(terms.data(), 1, results.data(), 1);
    return results;
  }
};

struct Transforms {
  Transform filter, input, output;
};
// Weights are transformed in f64, since their errors are those of every tile.
template <int kTile>
Transforms transforms() {
  using T = WinogradTransforms<kTile>;
  constexpr int64_t kIn = kTile + kWinogradTaps - 1;
  return {{f64, kWinogradTaps, kIn, T::template filter<ConstantOf<f64>, Term>},
          {f32, kIn, kIn, T::template input<ConstantOf<f32>, Term>},
          {f32, kIn, kTile, T::template output<ConstantOf<f32>, Term>}};
}

Transforms transforms_of(int64_t tile) {
  TENON_ASSERT(tile == 2 || tile == 4, "tiles of ", tile, " x ", tile);
  return tile == 4 ? transforms<4>() : transforms<2>();
}

class WinogradNest {
 public:
  WinogradNest(const Work& w, const Ref<const Var>& sum, const std::vector<Work>& after,
               const ScheduleOptions& options, WinogradPlan plan)
      : w_(w),
        sum_(sum),
        after_(after),
        options_(options),
        p_(std::move(plan)),
        transforms_(transforms_of(p_.tile)),
        weights_(planes("weights", p_.weights_plane)),
        inputs_(planes("inputs", p_.inputs_plane)),
        products_(planes("products", p_.products_plane)) {}

  StmtRef run() {
    const StmtRef products = multiply();
    if (!products) return nullptr;
    if (p_.panel_by_panel) return blocks(products);
    std::vector<Axis> axes{p_.channel};
    if (p_.panel) axes.insert(axes.begin(), *p_.panel);
    const StmtRef weights = outer_loops(axes, true, transform_weights());
    return alloc(weights_, seq({weights, blocks(products)}));
  }

 private:
  Ref<const Buffer> planes(std::string_view name, int64_t plane) const {
    return buffer(name, f32, {Dim(p_.points * plane)});
  }

  StmtRef blocks(const StmtRef& products) {
    const auto tile = var("tile", i64);
    const ForKind kind = p_.blocks == 1 ? ForKind::kParallel : ForKind::kSerial;
    const auto each_tile = [&](const ExprRef& count, const StmtRef& body) {
      return for_loop(tile, index(0), count, kind, at_tile(tile, body));
    };
    StmtRef all_products = for_loop(point_, index(0), index(p_.points),
                                    p_.panel_by_panel ? ForKind::kSerial : kind, products);
    if (p_.panel_by_panel) {
      const StmtRef weights = outer_loops(std::vector{p_.channel}, false, transform_weights());
      all_products =
          outer_loops(std::vector{*p_.panel}, true, alloc(weights_, seq({weights, all_products})));
    }
    // Tiles that the last block lacks repeat the last window; they have no results.
    const ExprRef size = index(p_.tiles_of_block),
                  left = difference(index(p_.tiles()), scaled(block_, p_.tiles_of_block));
    StmtRef body = seq({each_tile(size, transform_window(tile)), all_products,
                        each_tile(smaller(size, left), sums_of(tile))});
    body = for_loop(block_, index(0), index(p_.blocks),
                    p_.blocks == 1 ? ForKind::kSerial : ForKind::kParallel,
                    alloc(inputs_, alloc(products_, body)));
    return p_.each_image ? outer_loops(std::vector{p_.image}, false, body) : body;
  }

  // Binds the tile's image and the first place of its results.
  StmtRef at_tile(const Ref<const Var>& tile, const StmtRef& body) const {
    const auto number = var("number", i64), row = var("tile_row", i64);
    const int64_t rows = p_.rows_of_tiles(), columns = p_.columns_of_tiles();
    const ExprRef in_all =
        smaller(sum(scaled(block_, p_.tiles_of_block), tile), index(p_.tiles() - 1));
    Lets lets{{number, in_all},
              {row, quotient(number, index(columns))},
              {top_, scaled(binary(BinaryOp::kMod, row, index(rows)), p_.tile)},
              {left_, scaled(binary(BinaryOp::kMod, number, index(columns)), p_.tile)}};
    if (!p_.each_image) lets.emplace_back(p_.image.var, quotient(row, index(rows)));
    return with_lets(lets, body);
  }

  // ---- transforms

  // Both dimensions of a transform, in vectors over `lane`: `read` gives its arguments, and `write`
  // stores a result, by their places.
  StmtRef in_two_dimensions(
      const Transform& t, const Ref<const Var>& lane,
      const std::function<ExprRef(int64_t i, int64_t j)>& read,
      const std::function<StmtRef(int64_t i, int64_t j, const ExprRef& value)>& write) const {
    const auto half = buffer("half", t.dtype, {Dim(t.to * t.from * p_.lanes)});
    const auto at = [&](int64_t i, int64_t j) {
      return sum(index((i * t.from + j) * p_.lanes), lane);
    };
    const auto vector = [&](const StmtRef& body) {
      return for_loop(lane, index(0), index(p_.lanes), ForKind::kVector, body);
    };
    std::vector<StmtRef> parts;
    for (int64_t j = 0; j < t.from; ++j) {
      std::vector<Term> column;
      for (int64_t i = 0; i < t.from; ++i) column.emplace_back(cast(t.dtype, read(i, j)));
      std::vector<StmtRef> stores;
      const std::vector<Term> results = t.of(column);
      for (int64_t i = 0; i < t.to; ++i) {
        stores.push_back(store(half, {at(i, j)}, results[static_cast<size_t>(i)].expr()));
      }
      parts.push_back(vector(seq(stores)));
    }
    for (int64_t i = 0; i < t.to; ++i) {
      std::vector<Term> row;
      for (int64_t j = 0; j < t.from; ++j) row.emplace_back(load(half, {at(i, j)}));
      std::vector<StmtRef> stores;
      const std::vector<Term> results = t.of(row);
      for (int64_t j = 0; j < t.to; ++j) {
        stores.push_back(write(i, j, cast(f32, results[static_cast<size_t>(j)].expr())));
      }
      parts.push_back(vector(seq(stores)));
    }
    return alloc(half, seq(parts));
  }

  // For the channel and the panel that the enclosing loops bind.
  StmtRef transform_weights() const {
    const auto lane = var("lane", i64), vector = var("vector", i64);
    const ExprRef column = sum(scaled(vector, p_.lanes), lane);
    const StmtRef body = in_two_dimensions(
        transforms_.filter, lane,
        [&](int64_t i, int64_t j) {
          return substitute(p_.b, {{p_.tap_row.var.get(), index(i)},
                                   {p_.tap_column.var.get(), index(j)},
                                   {p_.filter.var.get(), column}});
        },
        [&](int64_t i, int64_t j, const ExprRef& value) {
          return store(weights_, {weight_at(index(i * p_.in + j), column)}, value);
        });
    return for_loop(vector, index(0), index(p_.columns / p_.lanes), ForKind::kSerial, body);
  }
  ExprRef weight_at(const ExprRef& point, const ExprRef& column) const {
    const ExprRef in_panel = sum(scaled(p_.channel.var, p_.columns), column);
    const ExprRef panel = p_.panel_by_panel ? index(0) : panel_number();
    return sum(sum(scaled(point, p_.weights_plane), scaled(panel, p_.columns * p_.channels)),
               in_panel);
  }
  ExprRef panel_number() const { return p_.panel ? ExprRef(p_.panel->var) : index(0); }
  ExprRef filter_number() const { return sum(scaled(panel_number(), p_.columns), p_.filter.var); }

  // The element at a place of the window.
  ExprRef element(const ExprRef& i, const ExprRef& j, const ExprRef& channel) const {
    VarMap values = in_window(i, j);
    values[p_.channel.var.get()] = channel;
    return substitute(p_.a, values);
  }
  VarMap in_window(const ExprRef& i, const ExprRef& j) const {
    return {{p_.row.var.get(), top_},
            {p_.column.var.get(), left_},
            {p_.tap_row.var.get(), i},
            {p_.tap_column.var.get(), j}};
  }
  ExprRef all_of(const std::function<ExprRef(const ExprRef& f)>& value) const {
    ExprRef all = literal_int(boolean, 1);
    for (const ExprRef& f : p_.inside) {
      all = binary(BinaryOp::kAnd, all, binary(BinaryOp::kLe, index(0), value(f)));
    }
    return all;
  }

  // Windows that reach into padding are copied first, with its zeros.
  StmtRef transform_window(const Ref<const Var>& tile) const {
    const auto lane = var("lane", i64);
    const auto inner =
        [&](const std::function<ExprRef(int64_t i, int64_t j, const ExprRef& channel)>& read) {
          const auto vector = var("vector", i64);
          const ExprRef channel = sum(scaled(vector, p_.lanes), lane);
          const StmtRef body = in_two_dimensions(
              transforms_.input, lane, [&](int64_t i, int64_t j) { return read(i, j, channel); },
              [&](int64_t i, int64_t j, const ExprRef& value) {
                return store(inputs_, {input_at(index(i * p_.in + j), tile, channel)}, value);
              });
          return for_loop(vector, index(0), index(p_.channels / p_.lanes), ForKind::kSerial, body);
        };
    StmtRef whole = inner([&](int64_t i, int64_t j, const ExprRef& channel) {
      return element(index(i), index(j), channel);
    });
    if (p_.inside.empty()) return whole;
    const auto window = buffer("window", f32, {Dim(p_.points * p_.channels)});
    const auto i = var("i", i64), j = var("j", i64);
    const auto place = [&](const ExprRef& row, const ExprRef& column, const ExprRef& channel) {
      return sum(scaled(sum(scaled(row, p_.in), column), p_.channels), channel);
    };
    const auto fill = [&](const ExprRef& value) {
      return vector_range(p_.channel.var, index(0), index(p_.channels), p_.lanes,
                          store(window, {place(i, j, p_.channel.var)}, value));
    };
    const ExprRef is_inside =
        all_of([&](const ExprRef& f) { return substitute(f, in_window(i, j)); });
    const StmtRef copy = for_loop(
        i, index(0), index(p_.in), ForKind::kSerial,
        for_loop(j, index(0), index(p_.in), ForKind::kSerial,
                 if_then(is_inside, fill(element(i, j, p_.channel.var)), fill(literal(f32, 0)))));
    const StmtRef padded = inner([&](int64_t row, int64_t column, const ExprRef& channel) {
      return load(window, {place(index(row), index(column), channel)});
    });
    // At the place of the window where it is smallest.
    const auto least = [&](const ExprRef& f, const Axis& tap) {
      return index(*coefficient(f, tap.var)->as_const() < 0 ? p_.in - 1 : 0);
    };
    const ExprRef is_whole = all_of([&](const ExprRef& f) {
      return substitute(f, in_window(least(f, p_.tap_row), least(f, p_.tap_column)));
    });
    return if_then(is_whole, whole, alloc(window, seq({copy, padded})));
  }
  ExprRef input_at(const ExprRef& point, const ExprRef& tile, const ExprRef& channel) const {
    return sum(sum(scaled(point, p_.inputs_plane), scaled(tile, p_.inputs_row)), channel);
  }
  ExprRef product_at(const ExprRef& point, const ExprRef& tile, const ExprRef& filter) const {
    return sum(sum(scaled(point, p_.products_plane), scaled(tile, p_.products_row)), filter);
  }

  // ---- products

  // Of the point `point_`.
  StmtRef multiply() const {
    const auto tile = var("tile", i64), total = var("sum", f32);
    Work w;
    w.axes = {{tile, Dim(p_.tiles_of_block)}};
    if (p_.panel && !p_.panel_by_panel) w.axes.push_back(*p_.panel);
    w.axes.push_back(p_.filter);
    w.reduce = {p_.channel};
    w.reduction = Reduction::kSum;
    w.accumulate = f32;
    w.out = products_;
    w.offset = flat_offset(products_->shape, {product_at(point_, tile, filter_number())}, w.vars());
    w.body = flatten_loads(
        binary(BinaryOp::kMul, load(inputs_, {input_at(point_, tile, p_.channel.var)}),
               load(weights_, {weight_at(point_, p_.filter.var)})),
        w.vars());
    Work after = w;
    after.reduce.clear();
    after.body = total;
    return schedule_contraction(w, total, {after}, options_, /*parallel=*/false);
  }

  // ---- results

  StmtRef sums_of(const Ref<const Var>& tile) const {
    const auto sums = buffer("sums", f32, {Dim(p_.tile * p_.tile * p_.filters())}),
               finite = buffer("finite", f32, {Dim(p_.lanes)});
    const auto lane = var("lane", i64), vector = var("vector", i64);
    const ExprRef filter = sum(scaled(vector, p_.lanes), lane);
    // 0 as long as all sums are finite.
    const auto check = [&](const ExprRef& value) {
      return store(finite, {lane},
                   binary(BinaryOp::kAdd, load(finite, {lane}),
                          binary(BinaryOp::kMul, value, literal(f32, 0))));
    };
    const StmtRef body = in_two_dimensions(
        transforms_.output, lane,
        [&](int64_t i, int64_t j) {
          return load(products_, {product_at(index(i * p_.in + j), tile, filter)});
        },
        [&](int64_t i, int64_t j, const ExprRef& value) {
          return seq({store(sums, {sum(index((i * p_.tile + j) * p_.filters()), filter)}, value),
                      check(value)});
        });
    const StmtRef clear = for_loop(lane, index(0), index(p_.lanes), ForKind::kVector,
                                   store(finite, {lane}, literal(f32, 0)));
    const StmtRef all =
        for_loop(vector, index(0), index(p_.filters() / p_.lanes), ForKind::kSerial, body);
    const ExprRef is_finite = binary(BinaryOp::kEq, total_of(finite), literal(f32, 0));
    return alloc(sums,
                 seq({alloc(finite, seq({clear, all, if_then(is_finite, seq({}), direct(sums))})),
                      finish(sums)}));
  }
  ExprRef total_of(const Ref<const Buffer>& b) const {
    std::vector<ExprRef> parts;
    for (int64_t i = 0; i < p_.lanes; ++i) parts.push_back(load(b, {index(i)}));
    for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
      for (size_t i = 0; i < parts.size() / 2; ++i) {
        parts[i] = binary(BinaryOp::kAdd, parts[i], parts[i + parts.size() / 2]);
      }
    }
    return parts[0];
  }

  // `body` for every result of the tile that exists, with its place bound. `first` is the first of
  // its sums.
  StmtRef each_place(const std::function<StmtRef(const ExprRef& first)>& body) const {
    const auto i = var("i", i64), j = var("j", i64);
    const ExprRef first = scaled(sum(scaled(i, p_.tile), j), p_.filters());
    StmtRef place = let(p_.column.var, sum(left_, j), body(first));
    const auto count = [&](const Ref<const Var>& start, int64_t size) {
      return smaller(index(p_.tile), difference(index(size), start));
    };
    place = for_loop(j, index(0), count(left_, p_.width), ForKind::kSerial, place);
    return for_loop(i, index(0), count(top_, p_.height), ForKind::kSerial,
                    let(p_.row.var, sum(top_, i), place));
  }
  ExprRef sum_at(const ExprRef& first) const { return sum(first, filter_number()); }

  // By the definition.
  StmtRef direct(const Ref<const Buffer>& sums) const {
    return each_place([&](const ExprRef& first) {
      Work one = w_;
      one.axes = {w_.axes.begin() + 3, w_.axes.end()};
      one.out = sums;
      one.inside = nullptr;
      one.offset = flat_offset(sums->shape, {sum_at(first)}, one.vars());
      return schedule_reduction(one, options_, false);
    });
  }

  StmtRef finish(const Ref<const Buffer>& sums) const {
    return each_place([&](const ExprRef& first) {
      const StmtRef point = let(sum_, load(sums, {sum_at(first)}), store_results(after_));
      const StmtRef row = vector_range(p_.filter.var, index(0), index(p_.columns), p_.lanes, point);
      return p_.panel ? for_loop(p_.panel->var, index(0), index(p_.panels), ForKind::kSerial, row)
                      : row;
    });
  }

  const Work& w_;
  const Ref<const Var>& sum_;
  const std::vector<Work>& after_;
  const ScheduleOptions& options_;
  const WinogradPlan p_;
  const Transforms transforms_;
  const Ref<const Buffer> weights_, inputs_, products_;
  const Ref<const Var> block_ = var("block", i64), point_ = var("point", i64);
  const Ref<const Var> top_ = var("top", i64), left_ = var("left", i64);  // of a tile's results
};

}  // namespace

StmtRef schedule_winograd(const Work& w, const Ref<const Var>& sum, const std::vector<Work>& after,
                          const ScheduleOptions& options, bool in_bounds) {
  // Each access to a window would be checked otherwise.
  if (!w.may_use_winograd || !in_bounds) return nullptr;
  const auto plan = plan_winograd(w, options);
  if (!plan) return nullptr;
  StmtRef nest = WinogradNest(w, sum, after, options, *plan).run();
  if (!nest || !plan->each_image || !plan->panel_by_panel) return nest;
  // Several images share the weights.
  const StmtRef of_several = WinogradNest(w, sum, after, options, with_all_panels(*plan)).run();
  return if_then(less(dim_value(plan->image.extent), index(2)), nest, of_several);
}

}  // namespace tenon::loop

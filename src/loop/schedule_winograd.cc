// Convolutions of 3 by 3 with stride 1 by Winograd's algorithm (support/winograd_transforms.h).
//
//   transform the weights to `points`                      parallel over channels
//   for each block of tiles of the image                   parallel, or its parts are
//     transform the window of each tile
//     for each point: products [tiles, channels] x [channels, filters]
//     for each tile: transform the products to sums; what follows the sums
//
// A point's products are a matrix product as any other (schedule_contraction.cc). An infinity or
// NaN would spread over its tile, so a tile whose sums aren't all finite is computed by the
// definition.
#include <algorithm>
#include <optional>
#include <utility>

#include "loop/affine.h"
#include "loop/nest.h"
#include "loop/padding.h"
#include "loop/walk.h"
#include "support/rounding.h"
#include "support/winograd_transforms.h"

namespace tenon::loop {
namespace {

constexpr int64_t kTaps = 3;
constexpr int64_t kMostSize = 1 << 16;  // of an axis; a file may give it any
// A block's windows and products should stay in the caches.
constexpr int64_t kProductsOfABlock = 2304;  // tiles * points
constexpr int64_t kMostScratch = int64_t{10} << 20;
constexpr int64_t kMostWeights = int64_t{256} << 20;  // bytes that are transformed in each call
// Rows of a power of two would fall into the same sets of the caches.
constexpr int64_t kRowPadding = 16;

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
  constexpr int64_t kIn = kTile + kTaps - 1;
  return {{f64, kTaps, kIn, T::template filter<ConstantOf<f64>, Term>},
          {f32, kIn, kIn, T::template input<ConstantOf<f32>, Term>},
          {f32, kIn, kTile, T::template output<ConstantOf<f32>, Term>}};
}

class WinogradSchedule {
  struct Sizes {
    int64_t images, height, width, panels, columns, channels;  // columns of a panel of filters
  };

 public:
  WinogradSchedule(const Work& w, const Ref<const Var>& sum, const std::vector<Work>& after,
                   const ScheduleOptions& options)
      : w_(w), sum_(sum), after_(after), options_(options) {}

  StmtRef run() {
    if (!find_operands()) return nullptr;
    const auto tile =
        options_.winograd_tile({s_.images, s_.height, s_.width, s_.channels, filters()});
    if (!tile) return nullptr;
    tile_ = *tile;
    in_ = tile_ + kTaps - 1;
    points_ = in_ * in_;
    if (points_ * filters() * s_.channels > kMostWeights / f32.bytes()) return nullptr;
    transforms_ = tile_ == 4 ? transforms<4>() : transforms<2>();
    guard_last_tiles();
    cut_blocks();
    const StmtRef products = multiply();
    if (!products) return nullptr;
    if (panel_by_panel()) return blocks(products);
    std::vector<Axis> axes{channel_};
    if (panel_) axes.insert(axes.begin(), *panel_);
    const StmtRef weights = outer_loops(axes, true, transform_weights());
    return alloc(weights_, seq({weights, blocks(products)}));
  }

 private:
  // ---- what is summed

  bool find_operands() {
    if (w_.reduction != Reduction::kSum || w_.accumulate != f32 || w_.reduce.size() != 3 ||
        (w_.axes.size() != 4 && w_.axes.size() != 5)) {
      return false;
    }
    image_ = w_.axes[0];
    row_ = w_.axes[1];
    column_ = w_.axes[2];
    if (w_.axes.size() == 5) panel_ = w_.axes[3];
    filter_ = w_.axes.back();
    channel_ = w_.reduce[2];
    lanes_ = vector_lanes(f32.bytes(), options_.target);
    if (!find_sizes()) return false;

    Work whole = w_;
    whole.body = with_padding_outside(w_.body);
    const Guarded g = guarded(whole);
    if (g.body->kind != ExprKind::kBinary || g.body->dtype != f32) return false;
    const auto& product = static_cast<const Binary&>(*g.body);
    if (product.op != BinaryOp::kMul) return false;
    a_ = product.a;
    b_ = product.b;
    if (depends_on(a_, filter_.var)) std::swap(a_, b_);
    return is_window(a_) && is_filter(b_) && find_conditions(g.conditions);
  }

  bool find_sizes() {
    const auto size = [](const Axis& a) {
      const auto n = a.extent.as_const();
      return n && *n <= kMostSize ? *n : 0;
    };
    each_image_ = !image_.extent.is_const();
    s_ = {each_image_ ? 1 : size(image_), size(row_),    size(column_),
          panel_ ? size(*panel_) : 1,     size(filter_), size(channel_)};
    for (int64_t n : {s_.images, s_.height, s_.width, s_.panels, s_.columns, s_.channels}) {
      if (n == 0) return false;
    }
    return size(w_.reduce[0]) == kTaps && size(w_.reduce[1]) == kTaps &&
           s_.channels % lanes_ == 0 && s_.columns % lanes_ == 0;
  }

  std::unordered_set<const Var*> image_vars() const {
    return {image_.var.get(), row_.var.get(), column_.var.get()};
  }
  std::unordered_set<const Var*> filter_vars() const {
    std::unordered_set<const Var*> vars{filter_.var.get()};
    if (panel_) vars.insert(panel_->var.get());
    return vars;
  }

  // Whether `e` only depends on the axes through its loads, and on the place of a tap as on that of
  // the window.
  bool is_window(const ExprRef& e) const {
    if (depends_on(e, filter_vars())) return false;
    Rewriter without_loads([](const ExprRef& node) {
      return node->kind == ExprKind::kLoad ? zero(node->dtype) : node;
    });
    auto all = image_vars();
    for (const Axis& a : w_.reduce) all.insert(a.var.get());
    if (depends_on(without_loads(e), all)) return false;
    for (const Load* l : loads_in(e)) {
      if (l->indices.size() > 1 || (!l->indices.empty() && !moves_as_window(l->indices[0]))) {
        return false;
      }
      if (l->indices.empty()) continue;
      const auto c = coefficient(l->indices[0], channel_.var);
      if (!c || !(c->is_const(0) || c->is_const(1))) return false;
    }
    return true;
  }
  bool moves_as_window(const ExprRef& e) const {
    const auto same = [&](const Axis& place, const Axis& tap) {
      const auto a = coefficient(e, place.var), b = coefficient(e, tap.var);
      return a && b && *a == *b;
    };
    return coefficient(e, image_.var) && same(row_, w_.reduce[0]) && same(column_, w_.reduce[1]);
  }
  bool is_filter(const ExprRef& e) const {
    if (e->dtype != f32 || depends_on(e, image_vars())) return false;
    return std::ranges::all_of(loads_in(e), [&](const Load* l) {
      const auto c =
          l->indices.size() == 1 ? coefficient(l->indices[0], filter_.var) : std::optional<Dim>(0);
      return c && (c->is_const(0) || c->is_const(1));
    });
  }

  bool find_conditions(const std::vector<ExprRef>& conditions) {
    for (const ExprRef& condition : conditions) {
      const ExprRef f = not_negative(condition);
      if (!f || !loads_in(f).empty() || !moves_as_window(f) || depends_on(f, filter_vars()) ||
          depends_on(f, channel_.var)) {
        return false;
      }
      for (const Axis& tap : {w_.reduce[0], w_.reduce[1]}) {
        if (!coefficient(f, tap.var)->is_const()) return false;
      }
      inside_.push_back(f);
    }
    return true;
  }

  // The last tiles may have more places than the result, whose windows may reach beyond the image.
  void guard_last_tiles() {
    const auto guard = [&](const Axis& place, int64_t size, const Axis& tap) {
      if (size % tile_ == 0) return;
      inside_.push_back(difference(index(size + kTaps - 2), sum(place.var, tap.var)));
    };
    guard(row_, s_.height, w_.reduce[0]);
    guard(column_, s_.width, w_.reduce[1]);
  }

  // ---- blocks

  int64_t filters() const { return s_.panels * s_.columns; }
  int64_t rows_of_tiles() const { return ceil_div(s_.height, tile_); }
  int64_t columns_of_tiles() const { return ceil_div(s_.width, tile_); }
  int64_t tiles() const { return s_.images * rows_of_tiles() * columns_of_tiles(); }

  void cut_blocks() {
    inputs_row_ = s_.channels + kRowPadding;
    products_row_ = filters() + kRowPadding;
    const int64_t bytes = points_ * (inputs_row_ + products_row_) * f32.bytes();
    const int64_t most =
        std::min(kProductsOfABlock / points_, std::max<int64_t>(1, kMostScratch / bytes));
    blocks_ = ceil_div(tiles(), most);
    if (blocks_ > 1) blocks_ = std::min(tiles(), round_up(blocks_, 2));  // two threads end together
    tiles_of_block_ = ceil_div(tiles(), blocks_);
    const auto planes = [&](std::string_view name, int64_t row) {
      return buffer(name, f32, {Dim(points_ * plane_of(row))});
    };
    inputs_ = planes("inputs", inputs_row_);
    products_ = planes("products", products_row_);
    const int64_t filters_at_once = panel_by_panel() ? s_.columns : filters();
    weights_plane_ = filters_at_once * s_.channels + kRowPadding;
    weights_ = buffer("points", f32, {Dim(points_ * weights_plane_)});
  }
  int64_t plane_of(int64_t row) const { return tiles_of_block_ * row + kRowPadding; }
  bool shares_blocks() const { return blocks_ == 1; }
  // Whether the weights of one panel are transformed at a time, just before they are multiplied,
  // while they are in the caches. Two threads end together, as far as that is possible.
  bool panel_by_panel() const {
    return panel_ && shares_blocks() && (s_.panels % 2 == 0 || s_.panels > 4);
  }

  StmtRef blocks(const StmtRef& products) {
    const auto tile = var("tile", i64);
    const ForKind kind = shares_blocks() ? ForKind::kParallel : ForKind::kSerial;
    const auto each_tile = [&](const ExprRef& count, const StmtRef& body) {
      return for_loop(tile, index(0), count, kind, at_tile(tile, body));
    };
    StmtRef all_products = for_loop(point_, index(0), index(points_),
                                    panel_by_panel() ? ForKind::kSerial : kind, products);
    if (panel_by_panel()) {
      const StmtRef weights = outer_loops(std::vector{channel_}, false, transform_weights());
      all_products =
          outer_loops(std::vector{*panel_}, true, alloc(weights_, seq({weights, all_products})));
    }
    // The windows of tiles that the last block lacks are that of the last one again, without
    // results.
    const ExprRef size = index(tiles_of_block_),
                  left = difference(index(tiles()), scaled(block_, tiles_of_block_));
    StmtRef body = seq({each_tile(size, transform_window(tile)), all_products,
                        each_tile(smaller(size, left), sums_of(tile))});
    body = for_loop(block_, index(0), index(blocks_),
                    shares_blocks() ? ForKind::kSerial : ForKind::kParallel,
                    alloc(inputs_, alloc(products_, body)));
    return each_image_ ? outer_loops(std::vector{image_}, false, body) : body;
  }

  // Binds the tile's image and the first place of its results.
  StmtRef at_tile(const Ref<const Var>& tile, const StmtRef& body) const {
    const auto number = var("number", i64), row = var("tile_row", i64);
    const int64_t rows = rows_of_tiles(), columns = columns_of_tiles();
    const ExprRef in_all = smaller(sum(scaled(block_, tiles_of_block_), tile), index(tiles() - 1));
    Lets lets{{number, in_all},
              {row, quotient(number, index(columns))},
              {top_, scaled(binary(BinaryOp::kMod, row, index(rows)), tile_)},
              {left_, scaled(binary(BinaryOp::kMod, number, index(columns)), tile_)}};
    if (!each_image_) lets.emplace_back(image_.var, quotient(row, index(rows)));
    return with_lets(lets, body);
  }

  // ---- transforms

  // Both dimensions of a transform, in vectors over `lane`: `read` gives its arguments, and `write`
  // stores a result, by their places.
  StmtRef in_two_dimensions(
      const Transform& t, const Ref<const Var>& lane,
      const std::function<ExprRef(int64_t i, int64_t j)>& read,
      const std::function<StmtRef(int64_t i, int64_t j, const ExprRef& value)>& write) const {
    const auto half = buffer("half", t.dtype, {Dim(t.to * t.from * lanes_)});
    const auto at = [&](int64_t i, int64_t j) {
      return sum(index((i * t.from + j) * lanes_), lane);
    };
    const auto vector = [&](const StmtRef& body) {
      return for_loop(lane, index(0), index(lanes_), ForKind::kVector, body);
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

  // Of the channel and the panel that loops around it name: points[point, panel, channel, column],
  // or without the panels.
  StmtRef transform_weights() const {
    const auto lane = var("lane", i64), vector = var("vector", i64);
    const ExprRef column = sum(scaled(vector, lanes_), lane);
    const StmtRef body = in_two_dimensions(
        transforms_.filter, lane,
        [&](int64_t i, int64_t j) {
          return substitute(b_, {{w_.reduce[0].var.get(), index(i)},
                                 {w_.reduce[1].var.get(), index(j)},
                                 {filter_.var.get(), column}});
        },
        [&](int64_t i, int64_t j, const ExprRef& value) {
          return store(weights_, {weight_at(index(i * in_ + j), column)}, value);
        });
    return for_loop(vector, index(0), index(s_.columns / lanes_), ForKind::kSerial, body);
  }
  ExprRef weight_at(const ExprRef& point, const ExprRef& column) const {
    const ExprRef in_panel = sum(scaled(channel_.var, s_.columns), column);
    const ExprRef panel = panel_by_panel() ? index(0) : panel_number();
    return sum(sum(scaled(point, weights_plane_), scaled(panel, s_.columns * s_.channels)),
               in_panel);
  }
  ExprRef panel_number() const { return panel_ ? ExprRef(panel_->var) : index(0); }

  // The element of the window at a place of it, and whether it lies within the image.
  ExprRef element(const ExprRef& i, const ExprRef& j, const ExprRef& channel) const {
    VarMap values = in_window(i, j);
    values[channel_.var.get()] = channel;
    return substitute(a_, values);
  }
  VarMap in_window(const ExprRef& i, const ExprRef& j) const {
    return {{row_.var.get(), top_},
            {column_.var.get(), left_},
            {w_.reduce[0].var.get(), i},
            {w_.reduce[1].var.get(), j}};
  }
  ExprRef all_of(const std::function<ExprRef(const ExprRef& f)>& value) const {
    ExprRef all = literal_int(boolean, 1);
    for (const ExprRef& f : inside_) {
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
          const ExprRef channel = sum(scaled(vector, lanes_), lane);
          const StmtRef body = in_two_dimensions(
              transforms_.input, lane, [&](int64_t i, int64_t j) { return read(i, j, channel); },
              [&](int64_t i, int64_t j, const ExprRef& value) {
                return store(inputs_, {input_at(index(i * in_ + j), tile, channel)}, value);
              });
          return for_loop(vector, index(0), index(s_.channels / lanes_), ForKind::kSerial, body);
        };
    StmtRef whole = inner([&](int64_t i, int64_t j, const ExprRef& channel) {
      return element(index(i), index(j), channel);
    });
    if (inside_.empty()) return whole;
    const auto window = buffer("window", f32, {Dim(points_ * s_.channels)});
    const auto i = var("i", i64), j = var("j", i64);
    const auto place = [&](const ExprRef& row, const ExprRef& column, const ExprRef& channel) {
      return sum(scaled(sum(scaled(row, in_), column), s_.channels), channel);
    };
    const auto fill = [&](const ExprRef& value) {
      return vector_range(channel_.var, index(0), index(s_.channels), lanes_,
                          store(window, {place(i, j, channel_.var)}, value));
    };
    const ExprRef is_inside =
        all_of([&](const ExprRef& f) { return substitute(f, in_window(i, j)); });
    const StmtRef copy = for_loop(
        i, index(0), index(in_), ForKind::kSerial,
        for_loop(j, index(0), index(in_), ForKind::kSerial,
                 if_then(is_inside, fill(element(i, j, channel_.var)), fill(literal(f32, 0)))));
    const StmtRef padded = inner([&](int64_t row, int64_t column, const ExprRef& channel) {
      return load(window, {place(index(row), index(column), channel)});
    });
    // At the place of the window where it holds least.
    const auto least = [&](const ExprRef& f, const Axis& tap) {
      return index(*coefficient(f, tap.var)->as_const() < 0 ? in_ - 1 : 0);
    };
    const ExprRef is_whole = all_of([&](const ExprRef& f) {
      return substitute(f, in_window(least(f, w_.reduce[0]), least(f, w_.reduce[1])));
    });
    return if_then(is_whole, whole, alloc(window, seq({copy, padded})));
  }
  ExprRef input_at(const ExprRef& point, const ExprRef& tile, const ExprRef& channel) const {
    return sum(sum(scaled(point, plane_of(inputs_row_)), scaled(tile, inputs_row_)), channel);
  }
  ExprRef product_at(const ExprRef& point, const ExprRef& tile, const ExprRef& filter) const {
    return sum(sum(scaled(point, plane_of(products_row_)), scaled(tile, products_row_)), filter);
  }

  // ---- products

  // Of the point `point_`.
  StmtRef multiply() const {
    const auto tile = var("tile", i64), total = var("sum", f32);
    Work w;
    w.axes = {{tile, Dim(tiles_of_block_)}};
    if (panel_ && !panel_by_panel()) w.axes.push_back(*panel_);
    w.axes.push_back(filter_);
    w.reduce = {channel_};
    w.reduction = Reduction::kSum;
    w.accumulate = f32;
    w.out = products_;
    const ExprRef filter = sum(scaled(panel_number(), s_.columns), filter_.var);
    w.offset = flat_offset(products_->shape, {product_at(point_, tile, filter)}, w.vars());
    w.body =
        flatten_loads(binary(BinaryOp::kMul, load(inputs_, {input_at(point_, tile, channel_.var)}),
                             load(weights_, {weight_at(point_, filter_.var)})),
                      w.vars());
    Work after = w;
    after.reduce.clear();
    after.body = total;
    return schedule_contraction(w, total, {after}, options_, /*parallel=*/false);
  }

  // ---- results

  StmtRef sums_of(const Ref<const Var>& tile) const {
    const auto sums = buffer("sums", f32, {Dim(tile_ * tile_ * filters())}),
               zeros = buffer("zeros", f32, {Dim(lanes_)});
    const auto lane = var("lane", i64), vector = var("vector", i64);
    const ExprRef filter = sum(scaled(vector, lanes_), lane);
    // Not 0 as soon as a sum isn't finite.
    const auto add_zero = [&](const ExprRef& value) {
      return store(zeros, {lane},
                   binary(BinaryOp::kAdd, load(zeros, {lane}),
                          binary(BinaryOp::kMul, value, literal(f32, 0))));
    };
    const StmtRef body = in_two_dimensions(
        transforms_.output, lane,
        [&](int64_t i, int64_t j) {
          return load(products_, {product_at(index(i * in_ + j), tile, filter)});
        },
        [&](int64_t i, int64_t j, const ExprRef& value) {
          return seq({store(sums, {sum(index((i * tile_ + j) * filters()), filter)}, value),
                      add_zero(value)});
        });
    const StmtRef clear = for_loop(lane, index(0), index(lanes_), ForKind::kVector,
                                   store(zeros, {lane}, literal(f32, 0)));
    const StmtRef all =
        for_loop(vector, index(0), index(filters() / lanes_), ForKind::kSerial, body);
    const ExprRef is_finite = binary(BinaryOp::kEq, total_of(zeros), literal(f32, 0));
    return alloc(sums,
                 seq({alloc(zeros, seq({clear, all, if_then(is_finite, seq({}), direct(sums))})),
                      finish(sums)}));
  }
  ExprRef total_of(const Ref<const Buffer>& b) const {
    std::vector<ExprRef> parts;
    for (int64_t i = 0; i < lanes_; ++i) parts.push_back(load(b, {index(i)}));
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
    const ExprRef first = scaled(sum(scaled(i, tile_), j), filters());
    StmtRef place = let(column_.var, sum(left_, j), body(first));
    const auto count = [&](const Ref<const Var>& start, int64_t size) {
      return smaller(index(tile_), difference(index(size), start));
    };
    place = for_loop(j, index(0), count(left_, s_.width), ForKind::kSerial, place);
    return for_loop(i, index(0), count(top_, s_.height), ForKind::kSerial,
                    let(row_.var, sum(top_, i), place));
  }
  ExprRef sum_at(const ExprRef& first) const {
    const ExprRef in_panel = sum(first, filter_.var);
    return panel_ ? sum(in_panel, scaled(panel_->var, s_.columns)) : in_panel;
  }

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
      const StmtRef row = vector_range(filter_.var, index(0), index(s_.columns), lanes_, point);
      return panel_ ? for_loop(panel_->var, index(0), index(s_.panels), ForKind::kSerial, row)
                    : row;
    });
  }

  const Work& w_;
  const Ref<const Var>& sum_;
  const std::vector<Work>& after_;
  const ScheduleOptions& options_;

  Axis image_, row_, column_, filter_, channel_;
  std::optional<Axis> panel_;  // of filters
  Sizes s_{};
  bool each_image_ = false;      // blocks are those of one image, because their number isn't known
  ExprRef a_, b_;                // the image's and the weights' factor,
  std::vector<ExprRef> inside_;  // where none of these is negative
  int64_t lanes_ = 0;

  Transforms transforms_;
  int64_t tile_ = 0, in_ = 0, points_ = 0;  // results and inputs of a tile, per side; points
  int64_t blocks_ = 0, tiles_of_block_ = 0, inputs_row_ = 0, products_row_ = 0, weights_plane_ = 0;
  Ref<const Buffer> weights_, inputs_, products_;
  const Ref<const Var> block_ = var("block", i64), point_ = var("point", i64);
  const Ref<const Var> top_ = var("top", i64), left_ = var("left", i64);  // of a tile's results
};

}  // namespace

StmtRef schedule_winograd(const Work& w, const Ref<const Var>& sum, const std::vector<Work>& after,
                          const ScheduleOptions& options) {
  return WinogradSchedule(w, sum, after, options).run();
}

}  // namespace tenon::loop

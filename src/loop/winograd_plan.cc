#include "loop/winograd_plan.h"

#include <algorithm>

#include "loop/padding.h"
#include "support/rounding.h"

namespace tenon::loop {
namespace {

constexpr int64_t kMostSize = 1 << 16;  // of an axis; a file may give it any
// Of the image's factor, which is written out for each place of a window.
constexpr int64_t kMostNodes = 1 << 8;
constexpr int64_t kMostWeights = int64_t{256} << 20;  // bytes that are transformed in each call

int64_t weights_plane_of(const WinogradPlan& p) {
  return (p.panel_by_panel ? p.columns : p.filters()) * p.channels + kWinogradPadding;
}

class Planner {
 public:
  Planner(const Work& w, const ScheduleOptions& options) : w_(w), options_(options) {}

  std::optional<WinogradPlan> run() {
    if (!find_axes() || !find_sizes() || !find_factors()) return std::nullopt;
    const auto tile =
        options_.winograd_tile({p_.images, p_.height, p_.width, p_.channels, p_.filters()});
    if (!tile) return std::nullopt;
    p_.tile = *tile;
    p_.in = p_.tile + kWinogradTaps - 1;
    p_.points = p_.in * p_.in;
    if (p_.points * p_.filters() * p_.channels > kMostWeights / f32.bytes()) return std::nullopt;
    guard_last_tiles();
    cut_blocks();
    return p_;
  }

 private:
  bool find_axes() {
    if (w_.reduction != Reduction::kSum || w_.accumulate != f32 || w_.reduce.size() != 3 ||
        (w_.axes.size() != 4 && w_.axes.size() != 5)) {
      return false;
    }
    p_.image = w_.axes[0];
    p_.row = w_.axes[1];
    p_.column = w_.axes[2];
    if (w_.axes.size() == 5) p_.panel = w_.axes[3];
    p_.filter = w_.axes.back();
    p_.tap_row = w_.reduce[0];
    p_.tap_column = w_.reduce[1];
    p_.channel = w_.reduce[2];
    return true;
  }

  bool find_sizes() {
    const auto size = [](const Axis& a) {
      const auto n = a.extent.as_const();
      return n && *n <= kMostSize ? *n : 0;
    };
    p_.each_image = !p_.image.extent.is_const();
    p_.images = p_.each_image ? 1 : size(p_.image);
    p_.height = size(p_.row);
    p_.width = size(p_.column);
    p_.panels = p_.panel ? size(*p_.panel) : 1;
    p_.columns = size(p_.filter);
    p_.channels = size(p_.channel);
    for (int64_t n : {p_.images, p_.height, p_.width, p_.panels, p_.columns, p_.channels}) {
      if (n == 0) return false;
    }
    p_.lanes = vector_lanes(f32.bytes(), options_.target);
    return size(p_.tap_row) == kWinogradTaps && size(p_.tap_column) == kWinogradTaps &&
           p_.channels % p_.lanes == 0 && p_.columns % p_.lanes == 0;
  }

  // ---- the factors

  bool find_factors() {
    Work whole = w_;
    whole.body = with_padding_outside(w_.body);
    const Guarded g = guarded(whole);
    if (g.body->kind != ExprKind::kBinary || g.body->dtype != f32) return false;
    const auto& product = static_cast<const Binary&>(*g.body);
    if (product.op != BinaryOp::kMul) return false;
    p_.a = product.a;
    p_.b = product.b;
    if (depends_on(p_.a, p_.filter.var)) std::swap(p_.a, p_.b);
    return is_window(p_.a) && is_filter(p_.b) && find_conditions(g.conditions);
  }

  std::unordered_set<const Var*> image_vars() const {
    return {p_.image.var.get(), p_.row.var.get(), p_.column.var.get()};
  }
  std::unordered_set<const Var*> filter_vars() const {
    std::unordered_set<const Var*> vars{p_.filter.var.get()};
    if (p_.panel) vars.insert(p_.panel->var.get());
    return vars;
  }

  // Whether `e` uses the axes only in the indices of loads, and a tap as the place of the window.
  bool is_window(const ExprRef& e) const {
    if (depends_on(e, filter_vars()) || count_nodes(e, kMostNodes) == kMostNodes) return false;
    Rewriter without_loads([](const ExprRef& node) {
      return node->kind == ExprKind::kLoad ? zero(node->dtype) : node;
    });
    auto all = image_vars();
    for (const Axis& a : w_.reduce) all.insert(a.var.get());
    if (depends_on(without_loads(e), all)) return false;
    return std::ranges::all_of(loads_in(e), [&](const Load* l) {
      if (l->indices.empty()) return true;
      const auto c = coefficient(l->indices[0], p_.channel.var);
      return l->indices.size() == 1 && moves_as_window(l->indices[0]) && c &&
             (c->is_const(0) || c->is_const(1));
    });
  }
  bool moves_as_window(const ExprRef& e) const {
    const auto same = [&](const Axis& place, const Axis& tap) {
      const auto a = coefficient(e, place.var), b = coefficient(e, tap.var);
      return a && b && *a == *b;
    };
    return coefficient(e, p_.image.var) && same(p_.row, p_.tap_row) &&
           same(p_.column, p_.tap_column);
  }
  bool is_filter(const ExprRef& e) const {
    if (e->dtype != f32 || depends_on(e, image_vars()) ||
        count_nodes(e, kMostNodes) == kMostNodes) {
      return false;
    }
    return std::ranges::all_of(loads_in(e), [&](const Load* l) {
      if (l->indices.empty()) return true;
      const auto c = coefficient(l->indices[0], p_.filter.var);
      return l->indices.size() == 1 && c && (c->is_const(0) || c->is_const(1));
    });
  }

  bool find_conditions(const std::vector<ExprRef>& conditions) {
    for (const ExprRef& condition : conditions) {
      const ExprRef f = not_negative(condition);
      if (!f || !loads_in(f).empty() || !moves_as_window(f) || depends_on(f, filter_vars()) ||
          depends_on(f, p_.channel.var)) {
        return false;
      }
      for (const Axis& tap : {p_.tap_row, p_.tap_column}) {
        if (!coefficient(f, tap.var)->is_const()) return false;
      }
      p_.inside.push_back(f);
    }
    return true;
  }

  // ---- tiles

  // The last tiles may have more places than the result, whose windows may reach beyond the image.
  void guard_last_tiles() {
    const auto guard = [&](const Axis& place, int64_t size, const Axis& tap) {
      if (size % p_.tile == 0) return;
      p_.inside.push_back(difference(index(size + kWinogradTaps - 2), sum(place.var, tap.var)));
    };
    guard(p_.row, p_.height, p_.tap_row);
    guard(p_.column, p_.width, p_.tap_column);
  }

  void cut_blocks() {
    p_.inputs_row = p_.channels + kWinogradPadding;
    p_.products_row = p_.filters() + kWinogradPadding;
    const int64_t bytes = p_.points * (p_.inputs_row + p_.products_row) * f32.bytes();
    const int64_t most =
        std::min(kWinogradBlock / p_.points, std::max<int64_t>(1, kMostWinogradScratch / bytes));
    p_.blocks = ceil_div(p_.tiles(), most);
    // An even number, so that two threads end together.
    if (p_.blocks > 1) p_.blocks = std::min(p_.tiles(), round_up(p_.blocks, 2));
    p_.tiles_of_block = ceil_div(p_.tiles(), p_.blocks);
    p_.blocks = ceil_div(p_.tiles(), p_.tiles_of_block);
    p_.inputs_plane = p_.tiles_of_block * p_.inputs_row + kWinogradPadding;
    p_.products_plane = p_.tiles_of_block * p_.products_row + kWinogradPadding;
    // Threads then share the panels.
    p_.panel_by_panel = p_.panel && p_.blocks == 1 && (p_.panels % 2 == 0 || p_.panels > 4);
    p_.weights_plane = weights_plane_of(p_);
  }

  const Work& w_;
  const ScheduleOptions& options_;
  WinogradPlan p_;
};

}  // namespace

int64_t WinogradPlan::rows_of_tiles() const {
  return ceil_div(height, tile);
}
int64_t WinogradPlan::columns_of_tiles() const {
  return ceil_div(width, tile);
}

WinogradPlan with_all_panels(WinogradPlan plan) {
  plan.panel_by_panel = false;
  plan.weights_plane = weights_plane_of(plan);
  return plan;
}

std::optional<WinogradPlan> plan_winograd(const Work& w, const ScheduleOptions& options) {
  return Planner(w, options).run();
}

}  // namespace tenon::loop

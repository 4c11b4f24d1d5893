// How a convolution of 3 by 3 with stride 1 is divided for Winograd's algorithm.
//
// The result is cut into tiles of `tile` by `tile` places, each the result of a window of `in` by
// `in` places of the image. Weights and windows are transformed to `points`, in which the
// convolution is one matrix product per point:
//
//   weights   [point, panel, channel, column]   of all panels, or of one at a time
//   inputs    [point, tile, channel]            of the tiles of a block
//   products  [point, tile, filter]             the same tiles' sums over the channels
//
// A filter is a column of a panel. Planes, of a point each, and rows are longer than their content
// (kWinogradPadding).
//
// Private to the schedule_*.cc files.
#pragma once

#include <optional>

#include "loop/nest.h"
#include "support/winograd_cost.h"

namespace tenon::loop {

struct WinogradPlan {
  // ---- what is summed

  Axis image, row, column, filter;    // of the result; if `b` is in panels, `filter` is a column
  std::optional<Axis> panel;          // of one of these
  Axis tap_row, tap_column, channel;  // which are summed over
  ExprRef a, b;                       // the factors: the image's and the weights'
  // `a` counts where none of these is negative; elsewhere there is padding.
  std::vector<ExprRef> inside;
  int64_t images = 0, height = 0, width = 0, panels = 0, columns = 0, channels = 0;
  // The number of images isn't known: they are computed one by one, as `images` = 1.
  bool each_image = false;

  // ---- tiles

  int64_t lanes = 0;  // of a vector
  int64_t tile = 0, in = 0, points = 0;
  int64_t blocks = 0, tiles_of_block = 0;  // the last block may lack some
  // The weights of one panel at a time are transformed just before they are multiplied, while they
  // are in the caches.
  bool panel_by_panel = false;
  int64_t inputs_row = 0, inputs_plane = 0, products_row = 0, products_plane = 0;
  int64_t weights_plane = 0;

  int64_t filters() const { return panels * columns; }
  int64_t rows_of_tiles() const;
  int64_t columns_of_tiles() const;
  int64_t tiles() const { return images * rows_of_tiles() * columns_of_tiles(); }
};

// nullopt if `w` isn't such a convolution of f32, a size but the number of images isn't known,
// channels or filters don't fill vectors, or it is computed faster by its definition.
std::optional<WinogradPlan> plan_winograd(const Work& w, const ScheduleOptions& options);

// The same with the weights of all panels transformed first, for many images.
WinogradPlan with_all_panels(WinogradPlan plan);

}  // namespace tenon::loop

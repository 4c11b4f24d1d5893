// Shared by convolution and pooling: the axes of a layout, and the windows that slide over the
// spatial axes.
//
//   "NCHW": [N, C, s1, s2, ...]   "NHWC": [N, s1, s2, ..., C]   for any number of spatial axes
#pragma once

#include "graph/ir/operator_name.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {

struct Layout {
  size_t spatial;  // how many spatial axes
  bool channels_last;

  size_t channel_axis() const { return channels_last ? spatial + 1 : 1; }
  size_t spatial_axis(size_t k) const { return (channels_last ? 1 : 2) + k; }

  // Joins per-axis values into a list in the order of the layout.
  template <class T>
  std::vector<T> join(const T& batch, const T& channel, const std::vector<T>& places) const {
    std::vector<T> out = {batch};
    if (!channels_last) out.push_back(channel);
    out.insert(out.end(), places.begin(), places.end());
    if (channels_last) out.push_back(channel);
    return out;
  }
  // The spatial entries of a list over all axes.
  template <class T>
  std::vector<T> places(const std::vector<T>& all) const {
    auto begin = all.begin() + static_cast<std::ptrdiff_t>(spatial_axis(0));
    return std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(spatial));
  }
};

// The layout of operand 0, which has 1 to 3 spatial axes; checks its rank and the attribute
// "layout".
Layout layout_of(const InferContext& cx);

// One spatial axis: windows of `kernel` places, `dilation` apart, start every `stride` places of an
// axis of `extent` elements with `before` and `after` added around it.
struct Window {
  Dim extent, kernel, before, after;
  int64_t stride = 1, dilation = 1;

  // The distance from a window's first place to one past its last.
  Dim reach() const { return (kernel - 1) * dilation + 1; }
  Dim padded() const { return extent + before + after; }
  // How many windows fit; with `ceil`, including a last one that starts within extent and `before`.
  Dim count(bool ceil) const;
  // The place in x of entry `k` of window `o`; may lie outside x.
  Scalar place(const Scalar& o, const Scalar& k) const;
  // False only if all entries of the `count(ceil)` windows provably lie within x.
  bool may_leave(bool ceil) const;
};

// The windows that the attributes "strides", "pads" and "dilations" describe; fails if they don't
// match the axes. `kernel` has one size per spatial axis.
std::vector<Window> windows_of(const InferContext& cx, const Layout& layout,
                               const std::vector<Dim>& kernel);
// The same over axes of these sizes.
std::vector<Window> windows_of(const InferContext& cx, const std::vector<Dim>& extents,
                               const std::vector<Dim>& kernel);
// Requires that a window fits into each padded axis; with `ceil`, that one starts there.
void require_windows_fit(InferContext& cx, const std::vector<Window>& windows, bool ceil = false);

// x padded with `fill` along the spatial axes that a window may leave, or x itself if there are
// none. Adds the stage that makes it. `padded_place` gives indices into it.
BufferRef padded(const BufferRef& x, const Layout& layout, const std::vector<Window>& windows,
                 bool ceil, const Scalar& fill, std::vector<StageRef>* stages);
Scalar padded_place(const Window& window, bool ceil, const Scalar& o, const Scalar& k);

// Attributes shared by convolution and pooling.
AttrSpec strides_attr();
AttrSpec pads_attr();
AttrSpec dilations_attr();
AttrSpec layout_attr();

}  // namespace tenon::graph

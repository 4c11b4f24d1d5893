#include "graph/op/spatial.h"

namespace tenon::graph {

Layout layout_of(const InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (x.rank < 3 || x.rank > 5) {
    cx.fail(cat(cx.operand_text(0), " has rank ", x.rank,
                ", expected 3 to 5: batch, channels and 1 to 3 spatial axes"));
  }
  const String layout = cx.attr_string("layout");
  if (!(layout == kChannelsFirst) && !(layout == kChannelsLast)) {
    cx.fail(cat("'layout' is \"", layout, "\", expected ", kChannelsFirst, " or ", kChannelsLast));
  }
  return {static_cast<size_t>(x.rank - 2), layout == kChannelsLast};
}

Dim Window::count(bool ceil) const {
  Dim room = padded() - reach();
  if (!ceil) return floordiv(room, stride) + 1;
  return min(ceildiv(room, stride) + 1, ceildiv(extent + before, stride));
}

Scalar Window::place(const Scalar& o, const Scalar& k) const {
  Scalar at = stride == 1 ? o : o * index(stride);
  if (!kernel.is_const(1)) at = at + (dilation == 1 ? k : k * index(dilation));
  return before.is_const(0) ? at : at - size(before);
}

bool Window::may_leave(bool ceil) const {
  if (!proves_less_equal(before, 0)) return true;
  if (!ceil && proves_less_equal(after, 0)) return false;
  // The end of the last window.
  return !proves_less_equal((count(ceil) - 1) * stride + reach() - before, extent);
}

std::vector<Window> windows_of(const InferContext& cx, const Layout& layout,
                               const std::vector<Dim>& kernel) {
  return windows_of(cx, layout.places(dims_of(cx.tensor(0))), kernel);
}

std::vector<Window> windows_of(const InferContext& cx, const std::vector<Dim>& extents,
                               const std::vector<Dim>& kernel) {
  int64_t n = static_cast<int64_t>(extents.size());
  std::vector<int64_t> strides = per_axis(cx, "strides", n, 1);
  std::vector<int64_t> dilations = per_axis(cx, "dilations", n, 1);
  std::vector<Dim> pads = cx.attr_dims("pads");
  if (pads.empty()) pads.assign(extents.size() * 2, Dim(0));
  if (pads.size() != extents.size() * 2) {
    cx.fail(cat("'pads' has ", pads.size(), " entries, expected ", extents.size() * 2,
                ": the begin of each spatial axis, then the end of each"));
  }
  std::vector<Window> out;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (strides[i] < 1) cx.fail(cat("a stride is ", strides[i], ", expected at least 1"));
    if (dilations[i] < 1) cx.fail(cat("a dilation is ", dilations[i], ", expected at least 1"));
    if (kernel[i].is_const() && *kernel[i].as_const() < 1) {
      cx.fail(cat("a kernel size is ", kernel[i], ", expected at least 1"));
    }
    out.push_back(
        {extents[i], kernel[i], pads[i], pads[extents.size() + i], strides[i], dilations[i]});
  }
  return out;
}

void require_windows_fit(InferContext& cx, const std::vector<Window>& windows, bool ceil) {
  for (size_t i = 0; i < windows.size(); ++i) {
    const Dim beyond = ceil ? Dim(windows[i].stride - 1) : Dim(0);  // it may reach
    cx.require_less_equal(windows[i].reach(), windows[i].padded() + beyond,
                          cat("the kernel fits spatial axis ", i, " of 'x'"));
  }
}

BufferRef padded(const BufferRef& x, const Layout& layout, const std::vector<Window>& windows,
                 bool ceil, const Scalar& fill, std::vector<StageRef>* stages) {
  std::vector<Dim> dims = dims_of(x);
  bool leaves = false;
  for (size_t k = 0; k < windows.size(); ++k) {
    if (!windows[k].may_leave(ceil)) continue;
    leaves = true;
    Dim reached = (windows[k].count(ceil) - 1) * windows[k].stride + windows[k].reach();
    dims[layout.spatial_axis(k)] = max(reached, 0);
  }
  if (!leaves) return x;
  BufferRef out = loop::buffer("padded", x->dtype, dims);
  stages->push_back(map_stage(out, [&](const Indices& i) {
    Indices at = i;
    Scalar inside;
    for (size_t k = 0; k < windows.size(); ++k) {
      const Window& w = windows[k];
      if (!w.may_leave(ceil)) continue;
      Scalar& place = at[layout.spatial_axis(k)];
      if (!w.before.is_const(0)) place = place - size(w.before);
      Scalar within_x = lt(place, size(w.extent));
      if (!proves_less_equal(w.before, 0)) within_x = both(le(index(0), place), within_x);
      inside = inside ? both(inside, within_x) : within_x;
    }
    return select(inside, load(x, at), fill);
  }));
  return out;
}

Scalar padded_place(const Window& window, bool ceil, const Scalar& o, const Scalar& k) {
  Window w = window;
  if (w.may_leave(ceil)) w.before = 0;
  return w.place(o, k);
}

AttrSpec strides_attr() {
  return {"strides", AttrKind::kInts, "[]", "per spatial axis; empty: 1"};
}
AttrSpec pads_attr() {
  return {"pads", AttrKind::kDims, "[]", "all begins, then all ends of the spatial axes; empty: 0"};
}
AttrSpec dilations_attr() {
  return {"dilations", AttrKind::kInts, "[]", "per spatial axis; empty: 1"};
}
AttrSpec layout_attr() {
  return {"layout", AttrKind::kString, "\"NCHW\"", "NCHW: channels first; NHWC: channels last"};
}

}  // namespace tenon::graph

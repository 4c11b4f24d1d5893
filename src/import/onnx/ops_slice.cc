// Slice and Pad: bounds that may be negative, symbolic or computed.

#include <algorithm>
#include <limits>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attr_dims;
using graph::attr_ints;
using graph::attrs;

// A bound that counts from the end if it is negative; nullopt if its sign is not known.
std::optional<Dim> from_front(const Dim& bound, const Dim& size) {
  if (auto c = bound.as_const()) return *c < 0 ? size + *c : bound;
  if (proves_nonnegative(bound)) return bound;
  if (auto top = upper_bound(bound); top && *top < 0) return size + bound;
  return std::nullopt;
}

bool beyond(const Dim& bound) {  // INT_MAX and LONG_MAX mean the end
  auto c = bound.as_const();
  return c && *c >= std::numeric_limits<int32_t>::max();
}

bool before(const Dim& bound) {
  auto c = bound.as_const();
  return c && *c <= -std::numeric_limits<int32_t>::max();
}

// min(a, b), simplified if a <= b or b <= a can be proved.
Dim least(const Dim& a, const Dim& b) {
  return proves_less_equal(a, b) ? a : proves_less_equal(b, a) ? b : min(a, b);
}
Dim greatest(const Dim& a, const Dim& b) {
  return proves_less_equal(a, b) ? b : proves_less_equal(b, a) ? a : max(a, b);
}

struct Range {
  Dim start, size;
};

// The elements that ONNX's start:end:step selects of `size`. As in numpy, except that with a
// negative step a start before the first element is clamped to the first element.
std::optional<Range> range_of(const Dim& start, const Dim& end, int64_t step, const Dim& size) {
  auto first = before(start) ? Dim(0) : beyond(start) ? size : from_front(start, size);
  if (!first) return std::nullopt;
  if (step > 0) {
    auto last = beyond(end) ? size : before(end) ? Dim(0) : from_front(end, size);
    if (!last) return std::nullopt;
    Dim low = greatest(least(*first, size), 0), high = greatest(least(*last, size), 0);
    return Range{low, greatest(ceildiv(high - low, step), 0)};
  }
  // Backwards from `first` in [0, size - 1], down to the element after `last`, which may be -1. If
  // there are no elements, both are -1.
  auto last = beyond(end) ? size : before(end) ? std::optional<Dim>(-1) : from_front(end, size);
  if (!last) return std::nullopt;
  Dim high = least(greatest(*first, 0), size - 1), low = greatest(least(*last, size - 1), -1);
  Dim count = greatest(ceildiv(high - low, -step), 0);
  return Range{greatest(high, 0), count};
}

Operand slice_known(NodeContext& cx, const Operand& x, const Dims& starts, const Dims& ends,
                    const Ints& axes, const Ints& steps, bool* done) {
  Dims sizes = cx.dims(x), firsts(sizes.size(), Dim(0));
  Ints strides(sizes.size(), 1);
  *done = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    size_t a = static_cast<size_t>(axes[i]);
    auto range = range_of(starts[i], ends[i], steps[i], sizes[a]);
    if (!range) return {};
    firsts[a] = range->start;
    sizes[a] = range->size;
    strides[a] = steps[i];
    // One element needs no step; no elements need no start.
    if (range->size.is_const(0)) firsts[a] = 0;
    if (range->size.is_const(0) || range->size.is_const(1)) strides[a] = 1;
  }
  *done = true;
  if (sizes == cx.dims(x) && strides == Ints(sizes.size(), 1)) return x;
  return cx.op("slice", {x},
               attrs({{"starts", attr_dims(firsts)},
                      {"sizes", attr_dims(sizes)},
                      {"steps", attr_ints(strides)}}));
}

Operands slice_attributes(NodeContext& cx) {
  Ints starts = cx.attr_ints("starts"), ends = cx.attr_ints("ends"), all;
  for (size_t i = 0; i < starts.size(); ++i) all.push_back(static_cast<int64_t>(i));
  Ints axes = cx.axes(cx.attr_ints("axes", all), cx.rank(0));
  if (ends.size() != starts.size() || axes.size() != starts.size()) {
    cx.invalid(cat("starts, ends and axes of ", starts.size(), ", ", ends.size(), " and ",
                   axes.size(), " entries"),
               "as many of each");
  };
  bool done = false;
  Operand y = slice_known(cx, cx.in(0), Dims(starts.begin(), starts.end()),
                          Dims(ends.begin(), ends.end()), axes, Ints(starts.size(), 1), &done);
  return {y};
}

// The first elements, sizes and steps per axis, computed at run time. `on` and `steps` may be
// absent.
Operands bounds_at_run_time(NodeContext& cx, const Operand& x, const Operand& starts,
                            const Operand& ends, const Operand& on, const Operand& steps) {
  const auto wide = [&](const Operand& list) { return list ? cx.cast(list, i64) : list; };
  return cx.b.ops("slice_bounds",
                  {cx.op("shape_of", {x}), wide(starts), wide(ends), wide(on), wide(steps)});
}

// For steps that are computed at run time, even their sign: gathers computed indices of each axis.
Operand slice_by_indices(NodeContext& cx, Operand x, const Operand& starts, const Operand& ends,
                         const std::optional<Ints>& axes) {
  const Operand on = axes ? cx.ints_tensor(*axes) : cx.opt(3);
  Operands bounds = bounds_at_run_time(cx, x, starts, ends, on, cx.in(4));
  Dims sizes = cx.b.elements_of(bounds[1]);
  for (int64_t a = 0; a < static_cast<int64_t>(sizes.size()); ++a) {
    if (axes && std::find(axes->begin(), axes->end(), a) == axes->end()) continue;
    Operand place = cx.ints_tensor({a});
    Operand taken =
        cx.op("range", {cx.op("gather", {bounds[0], place}), cx.op("gather", {bounds[2], place})},
              attrs({{"count", sizes[static_cast<size_t>(a)]}}));
    x = cx.op("gather", {x, taken}, attrs({{"axis", a}}));
  }
  return x;
}

Operands slice(NodeContext& cx) {
  Operand x = cx.in(0), starts = cx.in(1), ends = cx.in(2);
  auto length = [&](const Operand& list) {
    return cx.rank(list) == 1 ? cx.dims(list)[0].as_const() : std::nullopt;
  };
  auto count = length(starts);
  // Bounds that a loop slices out of a longer list: there are as many of them as axes.
  if (!count && cx.has(3) && cx.rank(starts) == 1 && cx.rank(ends) == 1) {
    count = length(cx.in(3));
    if (count) {
      starts = cx.b.match_shape(starts, {*count});
      ends = cx.b.match_shape(ends, {*count});
    }
  }
  if (!count && cx.has(4)) return {slice_by_indices(cx, x, starts, ends, std::nullopt)};
  if (!count) {
    const Operands bounds = bounds_at_run_time(cx, x, starts, ends, cx.opt(3), Operand());
    return {cx.op("slice", {x},
                  attrs({{"starts", attr_dims(cx.b.elements_of(bounds[0]))},
                         {"sizes", attr_dims(cx.b.elements_of(bounds[1]))}}))};
  }
  if (*count > cx.rank(0)) {
    cx.invalid(cat(*count, " axes of a tensor of rank ", cx.rank(0)), cat("at most ", cx.rank(0)));
  }
  size_t n = static_cast<size_t>(*count);
  std::optional<Ints> axes = Ints(), steps = Ints(n, 1);
  for (size_t i = 0; i < n; ++i) axes->push_back(static_cast<int64_t>(i));
  if (cx.has(3)) axes = cx.ints(cx.in(3));
  if (cx.has(4)) steps = cx.ints(cx.in(4));
  if (axes) axes = cx.axes(*axes, cx.rank(0));
  auto known_starts = cx.values(starts), known_ends = cx.values(ends);
  if ((axes && axes->size() != n) || (steps && steps->size() != n) ||
      (known_starts && known_starts->size() != n) || (known_ends && known_ends->size() != n)) {
    cx.invalid("starts, ends, axes and steps of unequal length",
               cat(n, " entries of each, as starts has"));
  }
  if (!steps) return {slice_by_indices(cx, x, starts, ends, axes)};
  for (int64_t& s : *steps) {
    if (s == 0) cx.invalid("a step of 0", "another number");
    s = std::max<int64_t>(s, -std::numeric_limits<int32_t>::max());
    s = std::min<int64_t>(s, std::numeric_limits<int32_t>::max());
  }
  if (axes && known_starts && known_ends) {
    bool done = false;
    Operand y = slice_known(cx, x, *known_starts, *known_ends, *axes, *steps, &done);
    if (done) return {y};
  }
  // The axes, or the signs of bounds, are only known at run time.
  Ints all_steps(static_cast<size_t>(cx.rank(0)), 1);
  if (axes) {
    for (size_t i = 0; i < n; ++i) all_steps[static_cast<size_t>((*axes)[i])] = (*steps)[i];
  } else if (*steps != Ints(n, 1)) {
    return {slice_by_indices(cx, x, starts, ends, std::nullopt)};
  }
  const Operand on = axes ? cx.ints_tensor(*axes) : cx.in(3);
  Operands bounds = bounds_at_run_time(cx, x, starts, ends, on, cx.ints_tensor(*steps));
  Dims firsts = cx.b.elements_of(bounds[0]), sizes = cx.b.elements_of(bounds[1]);
  Dims whole = cx.dims(x);
  for (size_t i = 0; axes && i < whole.size(); ++i) {  // axes that are not sliced keep their size
    if (std::find(axes->begin(), axes->end(), static_cast<int64_t>(i)) == axes->end()) {
      firsts[i] = 0;
      sizes[i] = whole[i];
    }
  }
  return {cx.op("slice", {x},
                attrs({{"starts", attr_dims(firsts)},
                       {"sizes", attr_dims(sizes)},
                       {"steps", attr_ints(all_steps)}}))};
}

Operand padded(NodeContext& cx, const Dims& pads, const Ints& axes, const Operand& value) {
  size_t rank = static_cast<size_t>(cx.rank(0)), n = axes.size();
  if (pads.size() != 2 * n)
    cx.invalid(cat(pads.size(), " pads"), cat(2 * n, ", two for each axis"));
  std::string mode = cx.attr_string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    cx.invalid(cat("mode=", mode), "constant, reflect, edge or wrap");
  }
  Dims before(rank, Dim(0)), after(rank, Dim(0));
  for (size_t i = 0; i < n; ++i) {
    before[static_cast<size_t>(axes[i])] = pads[i];
    after[static_cast<size_t>(axes[i])] = pads[n + i];
  }
  return cx.op(
      "pad", {cx.in(0), value},
      attrs({{"before", attr_dims(before)}, {"after", attr_dims(after)}, {"mode", String(mode)}}));
}

Ints all_axes(NodeContext& cx) {
  Ints out;
  for (int64_t i = 0; i < cx.rank(0); ++i) out.push_back(i);
  return out;
}

Operands pad_attributes(NodeContext& cx) {
  Ints pads = cx.attr_ints(cx.version() < 2 ? "paddings" : "pads");
  Operand value = cx.scalar_like(cx.in(0), cx.attr_float("value", 0));
  return {padded(cx, Dims(pads.begin(), pads.end()), all_axes(cx), value)};
}

// Scatters pads of axes that are computed at run time into a list for all axes.
Operand spread_pads(NodeContext& cx) {
  Operand rank = cx.integer(cx.rank(0));
  Operand begins = cx.op("mod", {cx.cast(cx.in(3), i64), rank});  // makes negative axes positive
  Operand places = cx.concat({begins, cx.add(begins, rank)}, 0);
  return cx.op("scatter_elements", {cx.full(i64, 0, {2 * cx.rank(0)}), places, cx.in(1)},
               attrs({{"axis", 0}}));
}

// Pads that may be negative, which crop: sizes in programs aren't, so they are two lists.
Dims signed_pads(NodeContext& cx, const Operand& pads, size_t count) {
  if (cx.values(pads) || cx.ints(pads)) return cx.elements(pads);
  const Operand wide = cx.cast(pads, i64), zero = cx.integer(0);
  const Dims added = cx.elements(cx.op("maximum", {wide, zero}), count);
  const Dims cropped = cx.elements(cx.op("maximum", {cx.op("neg", {wide}), zero}), count);
  Dims out;
  for (size_t i = 0; i < added.size(); ++i) out.push_back(added[i] - cropped[i]);
  return out;
}

Operands pad(NodeContext& cx) {
  Ints axes = all_axes(cx);
  Operand value = cx.has(2) ? cx.reshape(cx.in(2), {}) : cx.scalar_like(cx.in(0), 0),
          pads = cx.in(1);
  if (cx.has(3)) {
    if (auto known = cx.ints(cx.in(3))) {
      axes = cx.axes(*known, cx.rank(0));
    } else {
      pads = spread_pads(cx);
    }
  }
  return {padded(cx, signed_pads(cx, pads, 2 * axes.size()), axes, value)};
}

// Crops or pads axes around their centre to the sizes of an operand.
Operands center_crop_pad(NodeContext& cx) {
  Ints axes = cx.has_attr("axes") ? cx.axes(cx.attr_ints("axes"), cx.rank(0)) : all_axes(cx);
  Dims wanted = cx.elements(cx.in(1), axes.size()), sizes = cx.dims(0);
  if (wanted.size() != axes.size())
    cx.invalid(cat(wanted.size(), " sizes"), cat(axes.size(), ", one for each axis"));
  Dims before(sizes.size(), Dim(0)), after(sizes.size(), Dim(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    size_t a = static_cast<size_t>(axes[i]);
    // Cropping and padding both round down: they take floor(difference / 2) at the start.
    Dim grow = max(wanted[i] - sizes[a], 0), crop = max(sizes[a] - wanted[i], 0);
    Dim front = floordiv(grow, 2) - floordiv(crop, 2);
    before[a] = front;
    after[a] = wanted[i] - sizes[a] - front;
  }
  return {cx.op("pad", {cx.in(0), cx.scalar_like(cx.in(0), 0)},
                attrs({{"before", attr_dims(before)}, {"after", attr_dims(after)}}))};
}

}  // namespace

void register_slice(OpTable& t) {
  t.add("Slice", 1, slice_attributes);
  t.add("Slice", 10, slice);
  t.add("Pad", 1, pad_attributes);
  t.add("Pad", 11, pad);
  t.add("CenterCropPad", 18, center_crop_pad);
}

}  // namespace tenon::onnx

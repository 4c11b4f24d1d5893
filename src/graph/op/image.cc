// Operators on images beyond convolution and pooling: columns put together, columns taken at
// computed places, and regions sampled on a grid. Channels come first.
#include "graph/op/families.h"
#include "graph/op/spatial.h"

namespace tenon::graph {
namespace {

using loop::Reduction;

// Places, weights and sums are computed in this type.
DataType computed_type(const BufferRef& x) {
  return wide(x->dtype);
}

std::vector<Dim> counts_of(const std::vector<Window>& windows) {
  std::vector<Dim> out;
  for (const Window& w : windows) out.push_back(w.count(false));
  return out;
}

void require_kernel(InferContext& cx, const std::vector<Window>& windows) {
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    cx.require_less_equal(1, w.kernel, cat("kernel size of spatial axis ", i, " is at least 1"));
    cx.require_less_equal(0, w.extent, cat("size of spatial axis ", i, " is not negative"));
    cx.require_less_equal(w.reach(), w.padded(), cat("the kernel fits spatial axis ", i));
  }
}

// ---- col2im ----

std::vector<Window> image_windows(const InferContext& cx) {
  const std::vector<Dim> image = cx.attr_dims("image"), kernel = cx.attr_dims("kernel");
  if (image.empty() || image.size() != kernel.size()) {
    cx.fail(cat("'image' and 'kernel' have ", image.size(), " and ", kernel.size(),
                " entries, expected one of each per spatial axis"));
  }
  return windows_of(cx, image, kernel);
}

TypeRef infer_col2im(InferContext& cx) {
  require_rank(cx, 0, 3);
  const TensorType& x = cx.tensor(0);
  const std::vector<Window> windows = image_windows(cx);
  require_kernel(cx, windows);
  const Dim entries = product(cx.attr_dims("kernel")), channels = floordiv(x.dims[1], entries);
  cx.require_equal(x.dims[1], channels * entries, "axis 1 of 'x' and channels times kernel");
  cx.require_equal(x.dims[2], product(counts_of(windows)), "axis 2 of 'x' and number of windows");
  std::vector<Dim> dims = cx.attr_dims("image");
  dims.insert(dims.begin(), {x.dims[0], channels});
  return tensor_type(x.dtype, dims);
}

// Every element sums the entries of the windows that cover it.
loop::ComputeRef lower_col2im(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  const std::vector<Window> windows = image_windows(cx.info());
  const std::vector<Dim> kernel = cx.info().attr_dims("kernel"), counts = counts_of(windows);
  const std::vector<Dim> space = {y->shape[0], y->shape[1] * product(kernel), product(counts)};
  const DataType dtype = computed_type(x);
  return cx.compute(
      {loop::reduce_stage(y, Reduction::kSum, kernel, [&](const Indices& i, const Indices& k) {
        Scalar inside;
        Indices window;
        for (size_t s = 0; s < windows.size(); ++s) {
          const Window& w = windows[s];
          const Scalar start = i[2 + s] + size(w.before) - k[s] * index(w.dilation);
          const Scalar o = w.stride == 1 ? start : floor_div(start, index(w.stride));
          Scalar covers = in_range(o, counts[s]);
          if (w.stride != 1) covers = both(covers, eq(o * index(w.stride), start));
          inside = inside ? both(inside, covers) : covers;
          window.push_back(o);
        }
        const Scalar entry = i[1] * size(product(kernel)) + flatten(k, kernel);
        const Scalar value = load_within(x, {i[0], entry, flatten(window, counts)}, space);
        return select(inside, as(dtype, value), number(dtype, 0));
      })});
}

// A kernel, strides, dilations and pads for images of this rank, and images that they fit.
struct RandomWindows {
  std::vector<int64_t> image, kernel, strides, dilations, pads, counts;
};

RandomWindows random_windows(Random& random, size_t spatial) {
  RandomWindows r;
  r.pads.resize(2 * spatial);
  for (size_t i = 0; i < spatial; ++i) {
    r.kernel.push_back(random.between(1, 3));
    r.strides.push_back(random.between(1, 3));
    r.dilations.push_back(random.between(1, 2));
    r.pads[i] = random.between(0, 2);
    r.pads[spatial + i] = random.between(0, 2);
    const int64_t reach = (r.kernel[i] - 1) * r.dilations[i] + 1,
                  pads = r.pads[i] + r.pads[spatial + i];
    r.image.push_back(std::max<int64_t>(reach - pads, 0) + random.between(1, 3));
    r.counts.push_back((r.image[i] + pads - reach) / r.strides[i] + 1);
  }
  return r;
}

int64_t product_of(const std::vector<int64_t>& sizes) {
  int64_t out = 1;
  for (int64_t n : sizes) out *= n;
  return out;
}

Sample sample_col2im(const Operator& op, uint64_t seed) {
  Random random(seed);
  const RandomWindows r = random_windows(random, static_cast<size_t>(random.between(1, 3)));
  return {{sample_tensor(random.dtype(op.operands[0].dtypes),
                         {random.between(0, 2), random.between(1, 2) * product_of(r.kernel),
                          product_of(r.counts)})},
          attrs({{"image", attr_dims(to_dims(r.image))},
                 {"kernel", attr_dims(to_dims(r.kernel))},
                 {"strides", attr_ints(r.strides)},
                 {"pads", attr_dims(to_dims(r.pads))},
                 {"dilations", attr_ints(r.dilations)}})};
}

// ---- deform_columns ----

std::vector<Window> deformed_windows(const InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (x.rank < 3 || x.rank > 5) {
    cx.fail(cat(cx.operand_text(0), " has rank ", x.rank,
                ", expected 3 to 5: batch, channels and 1 to 3 spatial axes"));
  }
  const std::vector<Dim> dims = dims_of(x), kernel = cx.attr_dims("kernel");
  if (kernel.size() + 2 != dims.size()) {
    cx.fail(cat("'kernel' has ", kernel.size(), " entries, but 'x' has ", dims.size() - 2,
                " spatial axes"));
  }
  return windows_of(cx, {dims.begin() + 2, dims.end()}, kernel);
}

TypeRef infer_deform_columns(InferContext& cx) {
  const std::vector<Window> windows = deformed_windows(cx);
  require_kernel(cx, windows);
  const TensorType& x = cx.tensor(0);
  const int64_t groups = cx.attr_int("offset_groups"), spatial = x.rank - 2;
  if (groups < 1) cx.fail(cat("'offset_groups' is ", groups, ", expected at least 1"));
  cx.require_equal(x.dims[1], floordiv(x.dims[1], groups) * groups,
                   "channels and a multiple of 'offset_groups'");
  const Dim entries = product(cx.attr_dims("kernel"));
  const std::vector<Dim> counts = counts_of(windows);
  for (size_t i = 1; i < cx.arg_count(); ++i) {
    if (!cx.has(i)) continue;
    const TensorType& t = cx.tensor(i);
    require_same_dtype(cx, i, 0);
    require_rank(cx, i, x.rank);
    cx.require_equal(t.dims[0], x.dims[0], cat("batches of 'x' and of ", cx.operand_text(i)));
    cx.require_equal(t.dims[1], entries * groups * (i == 1 ? spatial : 1),
                     cat("axis 1 of ", cx.operand_text(i), " and its number of entries"));
    for (size_t s = 0; s < counts.size(); ++s) {
      cx.require_equal(t.dims[2 + s], counts[s],
                       cat("axis ", 2 + s, " of ", cx.operand_text(i), " and number of windows"));
    }
  }
  std::vector<Dim> dims = counts;
  dims.insert(dims.begin(), {x.dims[0], x.dims[1], entries});
  return tensor_type(x.dtype, dims);
}

// Interpolates linearly between the 2^n elements around a place; those outside of x are 0.
Scalar interpolated(const BufferRef& x, const Scalar& batch, const Scalar& channel,
                    const Indices& place) {
  const DataType dtype = computed_type(x);
  const size_t n = place.size();
  Scalar sum;
  for (size_t corner = 0; corner < size_t{1} << n; ++corner) {
    Indices at = {batch, channel};
    Scalar weight, inside;
    for (size_t s = 0; s < n; ++s) {
      const bool upper = (corner >> s & 1) != 0;
      const Scalar base = unary(UnaryOp::kFloor, place[s]), share = place[s] - base;
      // The cast saturates, so that no place far away comes back into range.
      const Scalar k = as(i64, upper ? base + number(dtype, 1) : base);
      const Scalar part = upper ? share : number(dtype, 1) - share;
      const Scalar exists = in_range(k, x->shape[2 + s]);
      at.push_back(clamp(k, x->shape[2 + s]));
      weight = weight ? weight * part : part;
      inside = inside ? both(inside, exists) : exists;
    }
    const Scalar value = select(inside, as(dtype, load(x, at)) * weight, number(dtype, 0));
    sum = sum ? sum + value : value;
  }
  return sum;
}

loop::ComputeRef lower_deform_columns(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &offset = cx.input(1), &y = cx.output();
  const std::vector<Window> windows = deformed_windows(cx.info());
  const std::vector<Dim> kernel = cx.info().attr_dims("kernel"), counts = counts_of(windows);
  const Dim entries = product(kernel);
  const int64_t groups = cx.info().attr_int("offset_groups");
  const size_t n = windows.size();
  const DataType dtype = computed_type(x);
  // The places, which the channels of a group share: [batch, group * entry, axis, windows...].
  std::vector<Dim> dims = {x->shape[0], entries * groups, Dim(static_cast<int64_t>(n))};
  dims.insert(dims.end(), counts.begin(), counts.end());
  const BufferRef places = loop::buffer("places", dtype, dims);
  auto windowed = [&](const Dim& channels) {
    std::vector<Dim> space = {x->shape[0], channels};
    space.insert(space.end(), counts.begin(), counts.end());
    return space;
  };
  std::vector<StageRef> stages;
  stages.push_back(map_stage(places, [&](const Indices& i) {
    const Indices o(i.begin() + 3, i.end());
    Indices at = {i[0], i[1] * index(static_cast<int64_t>(n)) + i[2]};
    at.insert(at.end(), o.begin(), o.end());
    const Indices k = unflatten(groups == 1 ? i[1] : modulo(i[1], size(entries)), kernel);
    Scalar regular = windows[n - 1].place(o[n - 1], k[n - 1]);
    for (size_t s = n - 1; s-- > 0;) {
      regular =
          select(eq(i[2], index(static_cast<int64_t>(s))), windows[s].place(o[s], k[s]), regular);
    }
    const Dim channels = entries * (groups * static_cast<int64_t>(n));
    return as(dtype, regular) + as(dtype, load_within(offset, at, windowed(channels)));
  }));
  stages.push_back(map_stage(y, [&](const Indices& i) {
    const Indices o(i.begin() + 3, i.end());
    Scalar entry = i[2];
    if (groups != 1) {
      entry = floor_div(i[1], size(floordiv(x->shape[1], groups))) * size(entries) + entry;
      entry = within(entry, floordiv(x->shape[1], groups) * groups, x->shape[1]);
    }
    Indices place;
    for (size_t s = 0; s < n; ++s) {
      Indices at = {i[0], entry, index(static_cast<int64_t>(s))};
      at.insert(at.end(), o.begin(), o.end());
      place.push_back(load(places, at));
    }
    Scalar value = interpolated(x, i[0], i[1], place);
    if (cx.info().has(2)) {
      Indices at = {i[0], entry};
      at.insert(at.end(), o.begin(), o.end());
      value = value * as(dtype, load_within(cx.input(2), at, windowed(entries * groups)));
    }
    return as(y->dtype, value);
  }));
  return cx.compute(stages);
}

Sample sample_deform_columns(const Operator& op, uint64_t seed) {
  Random random(seed);
  const size_t spatial = static_cast<size_t>(random.between(1, 3));
  const RandomWindows r = random_windows(random, spatial);
  const int64_t batches = random.between(0, 2), groups = random.between(1, 2);
  const DataType dtype = random.dtype(op.operands[0].dtypes);
  auto with = [&](int64_t channels, const std::vector<int64_t>& places) {
    std::vector<int64_t> shape = {batches, channels};
    shape.insert(shape.end(), places.begin(), places.end());
    return sample_tensor(dtype, shape);
  };
  const int64_t entries = groups * product_of(r.kernel);
  return {{with(groups * random.between(1, 2), r.image),
           with(entries * static_cast<int64_t>(spatial), r.counts),
           random.coin() ? with(entries, r.counts) : unit_type()},
          attrs({{"kernel", attr_dims(to_dims(r.kernel))},
                 {"strides", attr_ints(r.strides)},
                 {"pads", attr_dims(to_dims(r.pads))},
                 {"dilations", attr_ints(r.dilations)},
                 {"offset_groups", groups}})};
}

// ---- roi_align ----

TypeRef infer_roi_align(InferContext& cx) {
  const TensorType &x = cx.tensor(0), &rois = cx.tensor(1);
  require_rank(cx, 0, 4);
  for (size_t i : {1, 3}) {
    if (cx.has(i)) require_rank(cx, i, 2);
  }
  require_rank(cx, 2, 1);
  require_same_dtype(cx, 1, 0);
  cx.require_equal(rois.dims[1], 4, "numbers of a region");
  cx.require_equal(cx.tensor(2).dims[0], rois.dims[0], "batch indices and regions");
  if (cx.has(3)) {
    cx.require_equal(cx.tensor(3).dims[0], rois.dims[0], "numbers of samples and regions");
    cx.require_equal(cx.tensor(3).dims[1], 2, "numbers of samples of a region");
  }
  for (int axis : {2, 3}) {
    cx.require_less_equal(1, x.dims[static_cast<size_t>(axis)],
                          cat("size of axis ", axis, " of 'x' is at least 1"));
  }
  const std::vector<Dim> sizes = cx.attr_dims("sizes"), most = cx.attr_dims("samples");
  for (const auto& [name, list] : {std::pair("sizes", sizes), {"samples", most}}) {
    if (list.size() != 2)
      cx.fail(cat("'", name, "' has ", list.size(), " entries, expected 2: of y and of x"));
    for (const Dim& d : list) cx.require_less_equal(0, d, cat("'", name, "' is not negative"));
  }
  const String mode = cx.attr_string("mode");
  if (!(mode == "avg") && !(mode == "max"))
    cx.fail(cat("'mode' is \"", mode, "\", expected avg or max"));
  return tensor_type(x.dtype, {rois.dims[0], x.dims[1], sizes[0], sizes[1]});
}

// Where one axis of a region is sampled: buffers [regions, size, samples] of the lower element
// of the two around each place, and of both weights, which are 0 outside of x.
struct RoiAxis {
  BufferRef counts;  // i64[regions]
  BufferRef low, near, far;
  Dim extent;

  struct Point {
    Scalar low, high, near, far;
  };
  Point point(const Scalar& roi, const Scalar& out, const Scalar& sample) const {
    const Indices at = {roi, out, sample};
    const Scalar first = load(low, at);
    return {first, min_of(first + index(1), size(extent - 1)), load(near, at), load(far, at)};
  }
};

// Axis 0 is y, 1 is x. A region is (x1, y1, x2, y2).
RoiAxis roi_axis(const LowerContext& cx, int axis, std::vector<StageRef>* stages) {
  const BufferRef &x = cx.input(0), &rois = cx.input(1);
  const InferContext& info = cx.info();
  const size_t a = static_cast<size_t>(axis);
  const DataType dtype = computed_type(x);
  const Dim regions = cx.output()->shape[0], out = info.attr_dims("sizes")[a],
            most = info.attr_dims("samples")[a];
  RoiAxis r;
  r.extent = x->shape[2 + a];
  r.counts = loop::buffer("counts", i64, {regions});
  const std::vector<Dim> dims = {regions, out, most};
  r.low = loop::buffer("low", i64, dims);
  r.near = loop::buffer("near", dtype, dims);
  r.far = loop::buffer("far", dtype, dims);
  stages->push_back(map_stage(r.counts, [&](const Indices& i) {
    if (!info.has(3)) return size(most);
    const Scalar n = load_within(cx.input(3), {i[0], index(axis)}, {regions, 2});
    return max_of(min_of(n, size(most)), index(0));
  }));
  auto side = [&](const Scalar& roi, int k) {
    Scalar v = as(dtype, load_within(rois, {roi, index(k)}, {regions, 4}));
    v = v * number(dtype, info.attr_float("scale"));
    return info.attr_bool("half_pixel") ? v - number(dtype, 0.5) : v;
  };
  auto place = [&](const Indices& i) {
    const Scalar start = side(i[0], 1 - axis);
    Scalar length = side(i[0], 3 - axis) - start;
    if (!info.attr_bool("half_pixel")) length = max_of(length, number(dtype, 1));
    const Scalar step = length / as(dtype, size(out));
    const Scalar share =
        (as(dtype, i[2]) + number(dtype, 0.5)) * step / as(dtype, load(r.counts, Indices{i[0]}));
    return start + as(dtype, i[1]) * step + share;
  };
  auto exists = [&](const Scalar& at) {
    return both(le(number(dtype, -1), at), le(at, as(dtype, size(r.extent))));
  };
  auto lower = [&](const Scalar& at) {
    return min_of(as(i64, max_of(at, number(dtype, 0))), size(r.extent - 1));
  };
  stages->push_back(map_stage(r.low, [&](const Indices& i) {
    const Scalar at = place(i);
    return loop::checked_index(select(exists(at), lower(at), index(0)), r.extent);
  }));
  auto weight = [&](const BufferRef& to, bool upper) {
    stages->push_back(map_stage(to, [&](const Indices& i) {
      const Scalar at = place(i), low = load(r.low, i);
      const Scalar share = select(lt(low, size(r.extent - 1)),
                                  max_of(at, number(dtype, 0)) - as(dtype, low), number(dtype, 0));
      return select(exists(at), upper ? share : number(dtype, 1) - share, number(dtype, 0));
    }));
  };
  weight(r.near, false);
  weight(r.far, true);
  return r;
}

loop::ComputeRef lower_roi_align(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  const bool average = cx.info().attr_string("mode") == "avg";
  const DataType dtype = computed_type(x);
  const Dim regions = y->shape[0];
  std::vector<StageRef> stages;
  const BufferRef batch = loop::buffer("batch", i64, {regions});
  stages.push_back(map_stage(batch, [&](const Indices& i) {
    return loop::checked_index(as(i64, load_within(cx.input(2), {i[0]}, {regions})), x->shape[0]);
  }));
  const RoiAxis rows = roi_axis(cx, 0, &stages), columns = roi_axis(cx, 1, &stages);
  const BufferRef pooled = loop::buffer("pooled", dtype, dims_of(y));
  auto sample = [&](const Indices& i, const Indices& k) {
    const RoiAxis::Point row = rows.point(i[0], i[2], k[0]),
                         column = columns.point(i[0], i[3], k[1]);
    auto part = [&](const Scalar& r, const Scalar& c, const Scalar& weight) {
      return weight * as(dtype, load(x, Indices{load(batch, Indices{i[0]}), i[1], r, c}));
    };
    const Scalar a = part(row.low, column.low, row.near * column.near),
                 b = part(row.low, column.high, row.near * column.far),
                 c = part(row.high, column.low, row.far * column.near),
                 d = part(row.high, column.high, row.far * column.far);
    return average ? a + b + c + d : max_of(max_of(a, b), max_of(c, d));
  };
  stages.push_back(loop::reduce_stage(
      pooled, average ? Reduction::kSum : Reduction::kMax, cx.info().attr_dims("samples"),
      [&](const Indices& i, const Indices& k) {
        if (!cx.info().has(3)) return sample(i, k);
        const Scalar inside = both(lt(k[0], load(rows.counts, Indices{i[0]})),
                                   lt(k[1], load(columns.counts, Indices{i[0]})));
        return select(inside, sample(i, k), average ? number(dtype, 0) : loop::lowest(dtype));
      }));
  stages.push_back(map_stage(y, [&](const Indices& i) {
    const Scalar count = load(rows.counts, Indices{i[0]}) * load(columns.counts, Indices{i[0]});
    const Scalar value = load(pooled, i);
    return as(y->dtype, average ? value / as(dtype, max_of(count, index(1)))
                                : select(lt(index(0), count), value, number(dtype, 0)));
  }));
  return cx.compute(stages);
}

Sample sample_roi_align(const Operator& op, uint64_t seed) {
  Random random(seed);
  const DataType dtype = random.dtype(op.operands[0].dtypes);
  const int64_t regions = random.between(0, 3);
  auto two = [&](int64_t low, int64_t high) {
    return attr_dims(to_dims({random.between(low, high), random.between(low, high)}));
  };
  return {{sample_tensor(dtype, {random.between(1, 2), random.between(1, 2), random.between(1, 5),
                                 random.between(1, 5)}),
           sample_tensor(dtype, {regions, 4}), sample_tensor(i64, {regions}),
           random.coin() ? sample_tensor(i64, {regions, 2}) : unit_type()},
          attrs({{"sizes", two(0, 3)},
                 {"samples", two(0, 3)},
                 {"scale", random.coin() ? 1.0 : 0.25},
                 {"half_pixel", random.coin()},
                 {"mode", String(random.coin() ? "avg" : "max")}})};
}

}  // namespace

void register_image(OperatorTable& table) {
  table.add({.name = "col2im",
             .kind = OpKind::kReduction,
             .operands = {{"x", kNumbers}},
             .attrs = {{"image", AttrKind::kDims, nullptr, "the result's spatial sizes"},
                       {"kernel", AttrKind::kDims, nullptr, "size of the window, per spatial axis"},
                       strides_attr(),
                       pads_attr(),
                       dilations_attr()},
             .summary = "the sum of windows [N, C * kernel, windows] at their places in an image",
             .infer = infer_col2im,
             .lower = lower_col2im,
             .sample = sample_col2im});
  table.add(
      {.name = "deform_columns",
       .kind = OpKind::kOpaque,
       .operands = {{"x", kFloats}, {"offset", kFloats}, {"mask", kFloats, OperandSpec::kOptional}},
       .attrs = {{"kernel", AttrKind::kDims, nullptr, "size of the window, per spatial axis"},
                 strides_attr(),
                 pads_attr(),
                 dilations_attr(),
                 {"offset_groups", AttrKind::kInt, "1", "groups of channels that move alike"}},
       .summary = "windows [N, C, kernel, windows...] whose entries an offset [N, groups * "
                  "kernel * axes, windows...] moves, interpolated, times the mask",
       .infer = infer_deform_columns,
       .lower = lower_deform_columns,
       .sample = sample_deform_columns});
  table.add(
      {.name = "roi_align",
       .kind = OpKind::kOpaque,
       .operands = {{"x", kFloats},
                    {"rois", kFloats},
                    {"batch_indices", kIndices},
                    {"counts", only(i64), OperandSpec::kOptional}},
       .attrs = {{"sizes", AttrKind::kDims, nullptr, "of the result: y, x"},
                 {"samples", AttrKind::kDims, nullptr,
                  "of each result element along y and x; with 'counts' [regions, 2], the most"},
                 {"scale", AttrKind::kFloat, "1.0", "of the regions' coordinates"},
                 {"half_pixel", AttrKind::kBool, "true", "coordinates are shifted by half a pixel"},
                 {"mode", AttrKind::kString, "\"avg\"", "avg: the mean of the samples; max"}},
       .summary = "regions (x1, y1, x2, y2) of images, sampled on a grid and interpolated",
       .infer = infer_roi_align,
       .lower = lower_roi_align,
       .sample = sample_roi_align});
}

}  // namespace tenon::graph

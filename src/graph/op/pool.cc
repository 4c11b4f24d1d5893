// Pooling over 1 to 3 spatial axes. Places outside x don't count, except in the divisor of an
// average that includes the padding.
#include "graph/op/families.h"
#include "graph/op/spatial.h"

namespace tenon::graph {
namespace {

using loop::Reduction;

struct Pool {
  Layout layout;
  std::vector<Window> windows;
  std::vector<Dim> kernel;
  bool ceil;
};

Pool pool_of(const InferContext& cx) {
  Layout layout = layout_of(cx);
  std::vector<Dim> kernel = to_dims(cx.attr_ints("kernel"));
  if (kernel.size() != layout.spatial) {
    cx.fail(cat("'kernel' has ", kernel.size(), " entries, but 'x' has ", layout.spatial,
                " spatial axes"));
  }
  return {layout, windows_of(cx, layout, kernel), kernel, cx.attr_bool("ceil_mode")};
}

// The type of the pooled values.
Ref<const TensorType> pooled_type(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  Pool pool = pool_of(cx);
  require_windows_fit(cx, pool.windows, pool.ceil);
  std::vector<Dim> places;
  for (const Window& w : pool.windows) places.push_back(w.count(pool.ceil));
  return tensor_type(x.dtype,
                     pool.layout.join(x.dims[0], x.dims[pool.layout.channel_axis()], places));
}

// The index in `padded` of entry `k` of the window of result element `i`.
Indices source_of(const Pool& pool, const Indices& i, const Indices& k) {
  Indices o = pool.layout.places(i), places;
  for (size_t s = 0; s < k.size(); ++s) {
    places.push_back(padded_place(pool.windows[s], pool.ceil, o[s], k[s]));
  }
  return pool.layout.join(i[0], i[pool.layout.channel_axis()], places);
}

// ---- max_pool ----

TypeRef infer_max_pool(InferContext& cx) {
  Ref<const TensorType> y = pooled_type(cx);
  if (!cx.attr_bool("indices")) return y;
  if (layout_of(cx).channels_last) cx.fail("'indices' needs 'layout' NCHW");
  return tuple_type({y, tensor_type(i64, dims_of(*y))});
}

// The flat index in x of the greatest entry of each window; the first of equal ones. Entries
// outside x never win, even if all of x has the lowest value.
void add_indices(const LowerContext& cx, const Pool& pool, std::vector<StageRef>* stages) {
  const BufferRef& x = cx.input(0);
  BufferRef entry = loop::buffer("entry", i64, dims_of(cx.output()));
  auto places_of = [&](const Indices& i, const Indices& k) {
    Indices o = pool.layout.places(i), places;
    for (size_t s = 0; s < k.size(); ++s) places.push_back(pool.windows[s].place(o[s], k[s]));
    return places;
  };
  stages->push_back(
      loop::reduce_stage(entry, Reduction::kArgMaxFirst, {product(pool.kernel)},
                         [&](const Indices& i, const Indices& flat) {
                           Indices places = places_of(i, unflatten(flat[0], pool.kernel));
                           Scalar inside = literal_int(boolean, 1);
                           for (size_t s = 0; s < places.size(); ++s) {
                             inside = both(inside, in_range(places[s], pool.windows[s].extent));
                           }
                           Scalar value = load(x, pool.layout.join(i[0], i[1], places));
                           Scalar greatest = eq(value, load(cx.output(), i));
                           if (x->dtype.is_float())
                             greatest = either(greatest, unary(UnaryOp::kIsNan, value));
                           return as(i64, select(inside, greatest, literal_int(boolean, 0)));
                         }));
  bool column_major = cx.info().attr_bool("column_major");
  stages->push_back(map_stage(cx.output(1), [&](const Indices& i) {
    Indices place = places_of(i, unflatten(load(entry, i), pool.kernel));
    std::vector<Dim> dims = dims_of(x), spatial = pool.layout.places(dims);
    Scalar channels = i[0] * size(dims[1]) + i[1];
    if (column_major) {
      std::reverse(place.begin(), place.end());
      std::reverse(spatial.begin(), spatial.end());
    }
    return channels * size(product(spatial)) + flatten(place, spatial);
  }));
}

loop::ComputeRef lower_max_pool(const LowerContext& cx) {
  const BufferRef& x = cx.input(0);
  Pool pool = pool_of(cx.info());
  std::vector<StageRef> stages;
  BufferRef source =
      padded(x, pool.layout, pool.windows, pool.ceil, loop::lowest(x->dtype), &stages);
  stages.push_back(loop::reduce_stage(
      cx.output(), Reduction::kMax, pool.kernel,
      [&](const Indices& i, const Indices& k) { return load(source, source_of(pool, i, k)); }));
  if (cx.info().attr_bool("indices")) add_indices(cx, pool, &stages);
  return cx.compute(stages);
}

// ---- avg_pool, sum_pool ----

TypeRef infer_avg_pool(InferContext& cx) {
  return pooled_type(cx);
}
TypeRef infer_sum_pool(InferContext& cx) {
  return pooled_type(cx);
}

// How many entries of window `o` lie in [low, high), counted from the window's first padded place.
Scalar entries_within(const Window& w, const Scalar& o, const Dim& low, const Dim& high) {
  Scalar start = o * index(w.stride);
  // The first entry at or after `place`: ceil((place - start) / dilation), clamped to the kernel.
  auto first_from = [&](const Dim& place) {
    Scalar distance = size(place) - start;
    if (w.dilation != 1) {
      distance = floor_div(distance + index(w.dilation - 1), index(w.dilation));
    }
    return max_of(min_of(distance, size(w.kernel)), index(0));
  };
  return low.is_const(0) ? first_from(high) : first_from(high) - first_from(low);
}

loop::ComputeRef lower_sum(const LowerContext& cx, bool average) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  Pool pool = pool_of(cx.info());
  DataType dtype = wide(x->dtype);
  std::vector<StageRef> stages;
  BufferRef source = padded(x, pool.layout, pool.windows, pool.ceil, number(x->dtype, 0), &stages);
  BufferRef sum = !average ? y : loop::buffer("sum", dtype, dims_of(y));
  stages.push_back(loop::reduce_stage(sum, Reduction::kSum, pool.kernel,
                                      [&](const Indices& i, const Indices& k) {
                                        return as(dtype, load(source, source_of(pool, i, k)));
                                      }));
  if (!average) return cx.compute(stages);
  bool with_pads = cx.info().attr_bool("count_include_pad");
  stages.push_back(map_stage(y, [&](const Indices& i) {
    Scalar count = index(1);
    Indices o = pool.layout.places(i);
    for (size_t s = 0; s < o.size(); ++s) {
      const Window& w = pool.windows[s];
      // Without ceil_mode every window lies within the padded axis.
      bool whole = with_pads ? !pool.ceil : !w.may_leave(pool.ceil);
      count = count * (whole       ? size(w.kernel)
                       : with_pads ? entries_within(w, o[s], 0, w.padded())
                                   : entries_within(w, o[s], w.before, w.before + w.extent));
    }
    return as(y->dtype, load(sum, i) / as(dtype, count));
  }));
  return cx.compute(stages);
}

loop::ComputeRef lower_avg_pool(const LowerContext& cx) {
  return lower_sum(cx, true);
}
loop::ComputeRef lower_sum_pool(const LowerContext& cx) {
  return lower_sum(cx, false);
}

// ---- samples ----

Sample sample_pool(const Operator& op, uint64_t seed, bool channels_first = false) {
  Random random(seed);
  Layout layout{static_cast<size_t>(random.between(1, 3)), random.coin() && !channels_first};
  std::vector<int64_t> places, kernel, strides, dilations, pads(2 * layout.spatial);
  for (size_t i = 0; i < layout.spatial; ++i) {
    kernel.push_back(random.between(1, 3));
    strides.push_back(random.between(1, 3));
    dilations.push_back(random.between(1, 2));
    places.push_back((kernel[i] - 1) * dilations[i] + 1 + random.between(0, 3));
    pads[i] = random.between(0, kernel[i] - 1);
    pads[layout.spatial + i] = random.between(0, kernel[i] - 1);
  }
  return {{sample_tensor(random.dtype(op.operands[0].dtypes),
                         layout.join(random.between(1, 2), random.between(1, 3), places))},
          attrs({{"kernel", attr_ints(kernel)},
                 {"strides", attr_ints(strides)},
                 {"pads", attr_dims(to_dims(pads))},
                 {"dilations", attr_ints(dilations)},
                 {"ceil_mode", random.coin()},
                 {"layout", String(layout.channels_last ? kChannelsLast : kChannelsFirst)}})};
}

Sample sample_sum_pool(const Operator& op, uint64_t seed) {
  return sample_pool(op, seed);
}
Sample sample_max_pool(const Operator& op, uint64_t seed) {
  Sample s = sample_pool(op, seed, seed % 2 == 0);
  if (seed % 2 == 0) {
    s.attrs.set("indices", true);
    s.attrs.set("column_major", seed % 4 == 0);
  }
  return s;
}
Sample sample_avg_pool(const Operator& op, uint64_t seed) {
  Sample s = sample_pool(op, seed);
  s.attrs.set("count_include_pad", seed % 2 == 0);
  return s;
}

}  // namespace

void register_pool(OperatorTable& table) {
  std::vector<AttrSpec> common = {
      {"kernel", AttrKind::kInts, nullptr, "size of the window, per spatial axis"},
      strides_attr(),
      pads_attr(),
      dilations_attr(),
      {"ceil_mode", AttrKind::kBool, "false", "also windows that the padding's end cuts off"},
      layout_attr()};
  auto with = [&](std::vector<AttrSpec> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return more;
  };
  table.add({.name = "max_pool",
             .kind = OpKind::kReduction,
             .operands = {{"x", kNumbers}},
             .attrs = with({{"indices", AttrKind::kBool, "false",
                             "the result is (y, flat indices in x); needs NCHW"},
                            {"column_major", AttrKind::kBool, "false",
                             "indices count the last spatial axis slowest"}}),
             .summary = "the greatest of each window",
             .infer = infer_max_pool,
             .lower = lower_max_pool,
             .sample = sample_max_pool,
             .layout = LayoutRule::kImage});
  table.add({.name = "avg_pool",
             .kind = OpKind::kReduction,
             .operands = {{"x", kFloats}},
             .attrs = with({{"count_include_pad", AttrKind::kBool, "false",
                             "padding counts as elements, of 0"}}),
             .summary = "the mean of each window",
             .infer = infer_avg_pool,
             .lower = lower_avg_pool,
             .sample = sample_avg_pool,
             .layout = LayoutRule::kImage});
  table.add({.name = "sum_pool",
             .kind = OpKind::kReduction,
             .operands = {{"x", kNumbers}},
             .attrs = common,
             .summary = "the sum of each window",
             .infer = infer_sum_pool,
             .lower = lower_sum_pool,
             .sample = sample_sum_pool,
             .layout = LayoutRule::kImage});
}

}  // namespace tenon::graph

// Convolution and pooling, in both layouts.
#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

using Index = std::vector<int64_t>;

// An array with its axes in another order: axis k of the result is axis perm[k].
Nd permuted(const Nd& x, const Index& perm) {
  Index shape;
  for (int64_t p : perm) shape.push_back(x.shape[static_cast<size_t>(p)]);
  Nd y(shape);
  for_each_index(shape, [&](const Index& i) {
    Index at(i.size());
    for (size_t k = 0; k < i.size(); ++k) at[static_cast<size_t>(perm[k])] = i[k];
    y.at(i) = x.at(at);
  });
  return y;
}

// NHWC to NCHW, and back.
Nd channels_first(const Nd& x) {
  Index perm = {0, static_cast<int64_t>(x.shape.size()) - 1};
  for (size_t i = 1; i + 1 < x.shape.size(); ++i) perm.push_back(static_cast<int64_t>(i));
  return permuted(x, perm);
}
Nd channels_last(const Nd& x) {
  Index perm = {0};
  for (size_t i = 2; i < x.shape.size(); ++i) perm.push_back(static_cast<int64_t>(i));
  perm.push_back(1);
  return permuted(x, perm);
}

struct Spatial {
  bool last;
  size_t n;
  Nd x;  // channels first
  Index strides, dilations, pads;

  explicit Spatial(const Trial& t)
      : last(t.text("layout") == "NHWC"),
        n(t.operands[0].shape().size() - 2),
        x(t.operands[0]),
        strides(t.ints("strides")),
        dilations(t.ints("dilations")),
        pads(t.sizes("pads")) {
    if (last) x = channels_first(x);
  }
  // The place in x of entry `k` of window `o`, for all spatial axes; false if it is outside.
  bool place(const Index& o, const Index& k, Index* at) const {
    for (size_t s = 0; s < n; ++s) {
      int64_t p = o[s + 2] * strides[s] - pads[s] + k[s] * dilations[s];
      if (p < 0 || p >= x.shape[s + 2]) return false;
      (*at)[s + 2] = p;
    }
    return true;
  }
  int64_t padded(size_t s) const { return x.shape[s + 2] + pads[s] + pads[n + s]; }
  int64_t windows(size_t s, int64_t kernel, bool ceil) const {
    int64_t room = padded(s) - (kernel - 1) * dilations[s] - 1;
    int64_t count = room / strides[s] + 1;
    if (ceil && room % strides[s] != 0 && count * strides[s] < x.shape[s + 2] + pads[s]) ++count;
    return count;
  }
  void expect(const Tensor& found, const Nd& want) const {
    expect_equal(found, last ? channels_last(want) : want, 4);
  }
};

// Weights as [out, in, k...] (transposed: [in, out, k...]).
Nd weights(const Trial& t, bool last, bool transposed) {
  Nd w(t.operands[1]);
  if (!last) return w;
  int64_t rank = static_cast<int64_t>(w.shape.size());
  Index perm = transposed ? Index{rank - 2, rank - 1} : Index{rank - 1, rank - 2};
  for (int64_t i = 0; i < rank - 2; ++i) perm.push_back(i);
  return permuted(w, perm);
}

TEST(Conv, AgreesWithItsDefinition) {
  try_samples("conv", 200, [](const Trial& t) {
    Spatial s(t);
    Nd w = weights(t, s.last, false);
    int64_t groups = t.integer("groups"), out = w.shape[0], per_group = w.shape[1];
    Index kernel(w.shape.begin() + 2, w.shape.end()), shape = {s.x.shape[0], out};
    for (size_t i = 0; i < s.n; ++i) shape.push_back(s.windows(i, kernel[i], false));
    Nd want(shape);
    for_each_index(shape, [&](const Index& o) {
      double sum = t.operands[2] ? Nd(t.operands[2]).data[static_cast<size_t>(o[1])] : 0;
      int64_t group = o[1] / (out / groups);
      for (int64_t c = 0; c < per_group; ++c) {
        for_each_index(kernel, [&](const Index& k) {
          Index at = o, wt = {o[1], c};
          at[1] = group * per_group + c;
          wt.insert(wt.end(), k.begin(), k.end());
          if (s.place(o, k, &at)) sum += s.x.at(at) * w.at(wt);
        });
      }
      want.at(o) = sum;
    });
    s.expect(t.results[0], want);
  });
}

TEST(Conv, TransposeSpreadsEachElement) {
  try_samples("conv_transpose", 200, [](const Trial& t) {
    Spatial s(t);
    Nd w = weights(t, s.last, true);
    Index extra = t.ints("output_padding");
    int64_t groups = t.integer("groups"), out = w.shape[1];
    Index kernel(w.shape.begin() + 2, w.shape.end()), shape = {s.x.shape[0], out * groups};
    for (size_t i = 0; i < s.n; ++i) {
      shape.push_back((s.x.shape[i + 2] - 1) * s.strides[i] + (kernel[i] - 1) * s.dilations[i] + 1 +
                      extra[i] - s.pads[i] - s.pads[s.n + i]);
    }
    Nd want(shape);
    if (t.operands[2]) {
      for_each_index(shape, [&](const Index& o) {
        want.at(o) = Nd(t.operands[2]).data[static_cast<size_t>(o[1])];
      });
    }
    for_each_index(s.x.shape, [&](const Index& i) {
      int64_t group = i[1] / (s.x.shape[1] / groups);
      for (int64_t m = 0; m < out; ++m) {
        for_each_index(kernel, [&](const Index& k) {
          Index to = i, wt = {i[1], m};
          wt.insert(wt.end(), k.begin(), k.end());
          to[1] = group * out + m;
          for (size_t d = 0; d < s.n; ++d) {
            to[d + 2] = i[d + 2] * s.strides[d] - s.pads[d] + k[d] * s.dilations[d];
            if (to[d + 2] < 0 || to[d + 2] >= shape[d + 2]) return;
          }
          want.at(to) += s.x.at(i) * w.at(wt);
        });
      }
    });
    s.expect(t.results[0], want);
  });
}

TEST(Conv, TypeErrorsNameTheChannels) {
  auto x = tensor_type(f32, {1, 3, 8, 8});
  EXPECT_EQ(type_error("conv", {x, tensor_type(f32, {4, 2, 3, 3})}),
            "operator 'conv': channels of 'x' and of 'w' times 'groups': 3 and 2 differ");
  EXPECT_EQ(type_error("conv", {x, tensor_type(f32, {4, 3, 9, 3})}),
            "operator 'conv': the kernel fits spatial axis 0 of 'x': 9 is greater than 8");
  EXPECT_EQ(
      type_error("conv", {x, tensor_type(f32, {4, 3, 3, 3})}, attrs({{"layout", String("CN")}})),
      "operator 'conv': 'layout' is \"CN\", expected NCHW or NHWC");
  EXPECT_EQ(type_error("conv", {tensor_type(f32, {1, 3}), tensor_type(f32, {4, 3})}),
            "operator 'conv': operand 'x' has rank 2, expected 3 to 5: batch, channels and 1 to 3 "
            "spatial axes");
  EXPECT_EQ(
      type_error("conv", {x, tensor_type(f32, {4, 3, 3, 3})},
                 attrs({{"pads", attr_dims({Dim(1)})}})),
      "operator 'conv': 'pads' has 1 entries, expected 4: the begin of each spatial axis, then "
      "the end of each");
}

// Calls `body` with the elements of each window, and how many of its entries lie in the padding.
Index pooled(const Trial& t, const Spatial& s,
             const std::function<void(const Index& o, const std::vector<Index>& inside,
                                      int64_t in_padding)>& body) {
  Index kernel = t.ints("kernel"), shape = {s.x.shape[0], s.x.shape[1]};
  for (size_t i = 0; i < s.n; ++i) shape.push_back(s.windows(i, kernel[i], t.flag("ceil_mode")));
  for_each_index(shape, [&](const Index& o) {
    std::vector<Index> inside;
    int64_t in_padding = 0;
    for_each_index(kernel, [&](const Index& k) {
      Index at = o;
      if (s.place(o, k, &at)) {
        inside.push_back(at);
        return;
      }
      for (size_t d = 0; d < s.n; ++d) {
        if (o[d + 2] * s.strides[d] + k[d] * s.dilations[d] >= s.padded(d)) return;
      }
      ++in_padding;
    });
    body(o, inside, in_padding);
  });
  return shape;
}

TEST(Pool, MaximaAgreeWithTheirDefinition) {
  try_samples("max_pool", 200, [](const Trial& t) {
    Spatial s(t);
    std::vector<double> values, places;
    Index shape = pooled(t, s, [&](const Index&, const std::vector<Index>& inside, int64_t) {
      double best = t.operands[0].dtype().is_float() ? -INFINITY : -1e9;
      Index where;
      for (const Index& i : inside) {
        if (s.x.at(i) > best) best = s.x.at(i), where = i;
      }
      if (where.empty()) where = Index(s.n + 2, 0);
      values.push_back(inside.empty() ? NAN : best);
      double flat = double(where[0] * s.x.shape[1] + where[1]), within = 0;
      for (size_t d = 0; d < s.n; ++d) {
        size_t axis = t.flag("column_major") ? s.n + 1 - d : d + 2;
        within = within * double(s.x.shape[axis]) + double(where[axis]);
        flat *= double(s.x.shape[axis]);
      }
      places.push_back(flat + within);
    });
    Nd want(shape), indices(shape);
    want.data = values, indices.data = places;
    Nd found = s.last ? channels_first(Nd(t.results[0])) : Nd(t.results[0]);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) want.data[i] = found.data[i];  // a window without elements
    }
    s.expect(t.results[0], want);
    if (!t.flag("indices")) return;
    Nd have(t.results[1]);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) continue;
      ASSERT_EQ(have.data[i], indices.data[i]);
    }
  });
}

TEST(Pool, AveragesCountWhatTheyShould) {
  try_samples("avg_pool", 200, [](const Trial& t) {
    Spatial s(t);
    std::vector<double> values;
    Index shape = pooled(t, s, [&](const Index&, const std::vector<Index>& inside, int64_t pads) {
      double sum = 0;
      for (const Index& i : inside) sum += s.x.at(i);
      int64_t count = static_cast<int64_t>(inside.size());
      if (t.flag("count_include_pad")) count += pads;
      values.push_back(sum / static_cast<double>(count));
    });
    Nd want(shape);
    want.data = values;
    s.expect(t.results[0], want);
  });
}

TEST(Pool, SumsAgreeWithTheirDefinition) {
  try_samples("sum_pool", 150, [](const Trial& t) {
    Spatial s(t);
    std::vector<double> values;
    Index shape = pooled(t, s, [&](const Index&, const std::vector<Index>& inside, int64_t) {
      values.push_back(0);
      for (const Index& i : inside) values.back() += s.x.at(i);
    });
    Nd want(shape);
    want.data = values;
    s.expect(t.results[0], want);
  });
}

TEST(Pool, AMaximumOfLowestElementsHasAnIndexInX) {
  Tensor x = Tensor::empty({1, 1, 2}, f32);
  x.data_as<float>()[0] = x.data_as<float>()[1] = -INFINITY;
  auto r = run_operator(
      "max_pool", {x},
      attrs(
          {{"kernel", attr_ints({2})}, {"pads", attr_dims({Dim(1), Dim(0)})}, {"indices", true}}));
  EXPECT_EQ(Nd(r.results[1]).data, (std::vector<double>{0, 0}));
}

TEST(Pool, TypeErrorsNameTheAttribute) {
  auto x = tensor_type(f32, {1, 3, 8, 8});
  EXPECT_EQ(type_error("max_pool", {x}, attrs({{"kernel", attr_ints({2})}})),
            "operator 'max_pool': 'kernel' has 1 entries, but 'x' has 2 spatial axes");
  EXPECT_EQ(type_error("avg_pool", {x}, attrs({{"kernel", attr_ints({2, 0})}})),
            "operator 'avg_pool': a kernel size is 0, expected at least 1");
  EXPECT_EQ(type_error("max_pool", {x},
                       attrs({{"kernel", attr_ints({2, 2})}, {"strides", attr_ints({0, 1})}})),
            "operator 'max_pool': a stride is 0, expected at least 1");
}

}  // namespace
}  // namespace tenon::graph

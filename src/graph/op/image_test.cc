// Columns put together, columns taken at computed places, and sampled regions.
#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

using Index = std::vector<int64_t>;

int64_t product_of(const Index& sizes) {
  int64_t out = 1;
  for (int64_t n : sizes) out *= n;
  return out;
}

int64_t flat(const Index& at, const Index& sizes) {
  int64_t out = 0;
  for (size_t i = 0; i < sizes.size(); ++i) out = out * sizes[i] + at[i];
  return out;
}

// The attributes of windows that slide over some axes.
struct Windows {
  Index extents, kernel, strides, pads, dilations, counts;

  Windows(const Trial& t, const Index& sizes)
      : extents(sizes),
        kernel(t.sizes("kernel")),
        strides(t.ints("strides")),
        pads(t.sizes("pads")),
        dilations(t.ints("dilations")) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t room = sizes[i] + pads[i] + pads[sizes.size() + i];
      counts.push_back((room - (kernel[i] - 1) * dilations[i] - 1) / strides[i] + 1);
    }
  }
  // The place of entry k of window o.
  Index place(const Index& o, const Index& k) const {
    Index at;
    for (size_t i = 0; i < o.size(); ++i)
      at.push_back(o[i] * strides[i] + k[i] * dilations[i] - pads[i]);
    return at;
  }
  bool inside(const Index& at) const {
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] < 0 || at[i] >= extents[i]) return false;
    }
    return true;
  }
};

Index joined(Index head, const Index& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

TEST(Image, Col2imAddsEveryWindowAtItsPlace) {
  try_samples("col2im", 200, [](const Trial& t) {
    const Nd x(t.operands[0]);
    const Windows w(t, t.sizes("image"));
    const int64_t entries = product_of(w.kernel), channels = x.shape[1] / entries;
    Nd want(joined({x.shape[0], channels}, w.extents));
    for_each_index({x.shape[0], channels}, [&](const Index& nc) {
      for_each_index(w.kernel, [&](const Index& k) {
        for_each_index(w.counts, [&](const Index& o) {
          const Index at = w.place(o, k);
          if (!w.inside(at)) return;
          want.at(joined(nc, at)) +=
              x.at({nc[0], nc[1] * entries + flat(k, w.kernel), flat(o, w.counts)});
        });
      });
    });
    expect_equal(t.results[0], want);
  });
}

TEST(Image, DeformColumnsInterpolatesAtMovedPlaces) {
  try_samples("deform_columns", 200, [](const Trial& t) {
    const Nd x(t.operands[0]), offset(t.operands[1]);
    const size_t n = x.shape.size() - 2;
    const Windows w(t, Index(x.shape.begin() + 2, x.shape.end()));
    const int64_t entries = product_of(w.kernel), groups = t.integer("offset_groups");
    Nd want(joined({x.shape[0], x.shape[1], entries}, w.counts));
    for_each_index({x.shape[0], x.shape[1]}, [&](const Index& nc) {
      const int64_t group = nc[1] / (x.shape[1] / groups);
      for_each_index(w.kernel, [&](const Index& k) {
        for_each_index(w.counts, [&](const Index& o) {
          const int64_t entry = flat(k, w.kernel), moved = group * entries + entry;
          const Index regular = w.place(o, k);
          std::vector<double> place;
          for (size_t a = 0; a < n; ++a) {
            const int64_t channel = moved * static_cast<int64_t>(n) + static_cast<int64_t>(a);
            place.push_back(static_cast<double>(regular[a]) +
                            offset.at(joined({nc[0], channel}, o)));
          }
          double sum = 0;
          for_each_index(w.extents, [&](const Index& at) {
            double weight = 1;
            for (size_t a = 0; a < n; ++a)
              weight *= std::max(0.0, 1 - std::abs(place[a] - static_cast<double>(at[a])));
            if (weight > 0) sum += weight * x.at(joined(nc, at));
          });
          if (t.operands[2]) sum *= Nd(t.operands[2]).at(joined({nc[0], moved}, o));
          want.at(joined({nc[0], nc[1], entry}, o)) = sum;
        });
      });
    });
    expect_equal(t.results[0], want, 4);
  });
}

// The weighted elements around a place, in order.
struct Corners {
  double parts[4] = {0, 0, 0, 0};

  Corners(const Nd& x, int64_t n, int64_t c, double y0, double x0) {
    const int64_t height = x.shape[2], width = x.shape[3];
    const auto h = static_cast<double>(height), w = static_cast<double>(width);
    if (!(y0 >= -1 && y0 <= h && x0 >= -1 && x0 <= w)) return;
    double y = std::min(std::max(y0, 0.0), h - 1), xx = std::min(std::max(x0, 0.0), w - 1);
    const auto row = static_cast<int64_t>(y), column = static_cast<int64_t>(xx);
    const double down = y - static_cast<double>(row), right = xx - static_cast<double>(column);
    for (int64_t corner = 0; corner < 4; ++corner) {
      const bool lower = corner >= 2, later = corner % 2 == 1;
      parts[corner] =
          (lower ? down : 1 - down) * (later ? right : 1 - right) *
          x.at({n, c, std::min(row + lower, height - 1), std::min(column + later, width - 1)});
    }
  }
};

Tensor regions_and_counts(size_t i, const Sample& s, Random& random) {
  if (i == 2) return random_tensor(i64, sample_shape(s, 2), random, -1, 0);
  if (i == 3) return random_tensor(i64, sample_shape(s, 3), random, -1, 4);
  return Tensor();
}

TEST(Image, RoiAlignPoolsSamplesOfEachRegion) {
  try_samples(
      "roi_align", 300,
      [](const Trial& t) {
        const Nd x(t.operands[0]), rois(t.operands[1]), batch(t.operands[2]);
        const Index sizes = t.sizes("sizes"), most = t.sizes("samples");
        const bool half = t.flag("half_pixel"), average = t.text("mode") == "avg";
        Nd want({rois.shape[0], x.shape[1], sizes[0], sizes[1]});
        for_each_index(want.shape, [&](const Index& i) {
          double start[2], step[2];
          int64_t counts[2];
          for (int64_t axis : {0, 1}) {
            const double shift = half ? 0.5 : 0;
            start[axis] = rois.at({i[0], 1 - axis}) * t.real("scale") - shift;
            double length = rois.at({i[0], 3 - axis}) * t.real("scale") - shift - start[axis];
            if (!half) length = std::max(length, 1.0);
            step[axis] = length / static_cast<double>(sizes[static_cast<size_t>(axis)]);
            counts[axis] = most[static_cast<size_t>(axis)];
            if (t.operands[3]) {
              const auto given = static_cast<int64_t>(Nd(t.operands[3]).at({i[0], axis}));
              counts[axis] = std::max<int64_t>(0, std::min(given, counts[axis]));
            }
          }
          const auto image = static_cast<int64_t>(batch.at({i[0]}));
          double sum = 0, top = -INFINITY;
          for_each_index({counts[0], counts[1]}, [&](const Index& k) {
            double place[2];
            for (size_t a : {0, 1}) {
              place[a] =
                  start[a] + static_cast<double>(i[2 + a]) * step[a] +
                  (static_cast<double>(k[a]) + 0.5) * step[a] / static_cast<double>(counts[a]);
            }
            const Corners c(x, image < 0 ? image + x.shape[0] : image, i[1], place[0], place[1]);
            for (double part : c.parts) {
              sum += part;
              top = std::max(top, part);
            }
          });
          const int64_t count = counts[0] * counts[1];
          want.at(i) = count == 0 ? 0 : average ? sum / static_cast<double>(count) : top;
        });
        expect_equal(t.results[0], want, 20);
      },
      regions_and_counts);
}

TEST(Image, TypeErrorsNameTheOperatorAndTheOperand) {
  const TypeRef x = tensor_type(f32, {1, 4, 8, 8});
  auto sizes = [](std::vector<Dim> dims) { return attr_dims(dims); };
  EXPECT_EQ(type_error("col2im", {tensor_type(f32, {1, 5, 9})},
                       attrs({{"image", sizes({4, 4})}, {"kernel", sizes({2, 2})}})),
            "operator 'col2im': axis 1 of 'x' and channels times kernel: 5 and 4 differ");
  EXPECT_EQ(
      type_error("col2im", {tensor_type(f32, {1, 4, 9})},
                 attrs({{"image", sizes({4})}, {"kernel", sizes({2, 2})}})),
      "operator 'col2im': 'image' and 'kernel' have 1 and 2 entries, expected one of each per "
      "spatial axis");
  EXPECT_EQ(type_error("deform_columns", {x, tensor_type(f32, {1, 8, 7, 7})},
                       attrs({{"kernel", sizes({2, 2})}, {"offset_groups", 0}})),
            "operator 'deform_columns': 'offset_groups' is 0, expected at least 1");
  EXPECT_EQ(
      type_error("roi_align", {x, tensor_type(f32, {2, 4}), tensor_type(i64, {2}), unit_type()},
                 attrs({{"sizes", sizes({2})}, {"samples", sizes({1, 1})}})),
      "operator 'roi_align': 'sizes' has 1 entries, expected 2: of y and of x");
}

}  // namespace
}  // namespace tenon::graph

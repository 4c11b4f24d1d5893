// Fills, scans, padding and quantisation.
#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

using Index = std::vector<int64_t>;

Tensor integer(int64_t v) {
  return Tensor::copy_of<int64_t>(Index{}, i64, std::span(&v, 1));
}

TEST(Fill, FullRepeatsItsElement) {
  try_samples("full", 60, [](const Trial& t) {
    expect_equal(t.results[0], Nd(t.sizes("shape"), Nd(t.operands[0]).data[0]));
  });
}

TEST(Fill, RangeCounts) {
  try_samples("range", 60, [](const Trial& t) {
    Nd want(Index{t.size("count")});
    for (size_t i = 0; i < want.data.size(); ++i) {
      want.data[i] = Nd(t.operands[0]).data[0] + double(i) * Nd(t.operands[1]).data[0];
    }
    expect_equal(t.results[0], want);
  });
}

TEST(Fill, EyeHasOneDiagonal) {
  try_samples("eye", 60, [](const Trial& t) {
    Nd want(t.sizes("shape"));
    for_each_index(want.shape, [&](const Index& i) { want.at(i) = i[1] - i[0] == t.integer("k"); });
    expect_equal(t.results[0], want);
  });
}

TEST(Fill, ShapeOfTellsSizesAndClampsItsBounds) {
  try_samples("shape_of", 100, [](const Trial& t) {
    Index shape = shape_of_tensor(t.operands[0]);
    int64_t rank = static_cast<int64_t>(shape.size()), start = t.integer("start"),
            end = t.integer("end");
    start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
    end = std::clamp<int64_t>(end < 0 ? end + rank : end, 0, rank);
    Nd want(Index{std::max<int64_t>(0, end - start)});
    for (size_t i = 0; i < want.data.size(); ++i) {
      want.data[i] = double(shape[static_cast<size_t>(start) + i]);
    }
    expect_equal(t.results[0], want);
  });
  try_samples("size_of", 50, [](const Trial& t) {
    expect_equal(t.results[0], Nd({}, double(t.operands[0].count())));
  });
}

TEST(Fill, OneHotMarksThePlaceOfTheIndex) {
  Fill small = [](size_t i, const Sample& s, Random& random) {
    DataType dtype = type_as<TensorType>(s.operands[0])->dtype;
    if (i != 0) return Tensor();
    int64_t step = dtype.is_float() ? 4 : 1;  // whole numbers
    Tensor t = random_tensor(dtype, sample_shape(s, 0), random, -7, 7);
    for (int64_t k = 0; step == 4 && k < t.count(); ++k) {
      loop::scalar_store(dtype, static_cast<char*>(t.data()) + k * dtype.bytes(),
                         loop::float_bits(double(random.between(-7, 7))));
    }
    return t;
  };
  try_samples(
      "one_hot", 150,
      [](const Trial& t) {
        Nd indices(t.operands[0]), values(t.operands[1]), want(t.results[0]);
        int64_t depth = t.size("depth");
        int64_t axis = t.axis("axis", static_cast<int64_t>(want.shape.size()));
        ASSERT_EQ(want.shape[static_cast<size_t>(axis)], depth);
        for_each_index(want.shape, [&](const Index& i) {
          Index at = i;
          at.erase(at.begin() + axis);
          double hot = indices.at(at);
          if (hot < 0) hot += double(depth);
          want.at(i) = values.data[hot == double(i[static_cast<size_t>(axis)]) ? 1 : 0];
        });
        expect_equal(t.results[0], want);
      },
      small);
}

TEST(Fill, TriluKeepsATriangle) {
  Fill offset = [](size_t i, const Sample&, Random& random) {
    return i == 1 ? integer(random.between(-3, 3)) : Tensor();
  };
  try_samples(
      "trilu", 100,
      [](const Trial& t) {
        Nd want(t.operands[0]);
        double k = t.operands[1] ? Nd(t.operands[1]).data[0] : 0;
        for_each_index(want.shape, [&](const Index& i) {
          double distance = double(i[i.size() - 1] - i[i.size() - 2]);
          if (t.flag("upper") ? distance < k : distance > k) want.at(i) = 0;
        });
        expect_equal(t.results[0], want);
      },
      offset);
}

TEST(Scan, RunsAlongItsAxis) {
  for (bool sums : {true, false}) {
    Fill few = [&](size_t i, const Sample& s, Random& random) {
      return random_tensor(type_as<TensorType>(s.operands[i])->dtype, sample_shape(s, i), random,
                           -8, 8);
    };
    try_samples(
        sums ? "cumsum" : "cumprod", 120,
        [&](const Trial& t) {
          Nd x(t.operands[0]), want(x.shape);
          size_t axis = static_cast<size_t>(t.axis("axis", static_cast<int64_t>(x.shape.size())));
          for_each_index(x.shape, [&](const Index& i) {
            double v = sums ? 0 : 1;
            for (int64_t k = 0; k < x.shape[axis]; ++k) {
              bool before = t.flag("reverse") ? k > i[axis] : k < i[axis];
              if (!before && (t.flag("exclusive") || k != i[axis])) continue;
              Index at = i;
              at[axis] = k;
              v = sums ? v + x.at(at) : v * x.at(at);
            }
            want.at(i) = v;
          });
          expect_equal(t.results[0], want);
        },
        few);
  }
}

TEST(Pad, AgreesWithItsDefinition) {
  try_samples("pad", 300, [](const Trial& t) {
    Nd x(t.operands[0]);
    Index before = t.sizes("before"), after = t.sizes("after"), shape = x.shape;
    for (size_t k = 0; k < shape.size(); ++k) shape[k] += before[k] + after[k];
    Nd want(shape, t.operands[1] ? Nd(t.operands[1]).data[0] : 0);
    std::string mode = t.text("mode");
    for_each_index(shape, [&](const Index& i) {
      Index at = i;
      for (size_t k = 0; k < i.size(); ++k) {
        int64_t low = std::max<int64_t>(0, -before[k]);
        int64_t high = x.shape[k] - std::max<int64_t>(0, -after[k]) - 1;  // after cropping
        int64_t p = i[k] - before[k];
        while (p < low || p > high) {
          if (mode == "constant") return;
          if (mode == "edge" || high == low) {
            p = p < low ? low : high;
          } else if (mode == "wrap") {
            p += p < low ? high - low + 1 : low - high - 1;
          } else {
            p = p < low ? 2 * low - p : 2 * high - p;
          }
        }
        at[k] = p;
      }
      want.at(i) = x.at(at);
    });
    expect_equal(t.results[0], want);
  });
}

TEST(Pad, NothingToCopyIsAnError) {
  EXPECT_EQ(type_error("pad", {tensor_type(f32, {0})},
                       attrs({{"before", attr_dims({Dim(1)})},
                              {"after", attr_dims({Dim(0)})},
                              {"mode", String("edge")}})),
            "operator 'pad': axis 0: size after cropping: 1 is greater than 0");
  EXPECT_EQ(type_error("pad", {tensor_type(f32, {2})},
                       attrs({{"before", attr_dims({Dim(-3)})}, {"after", attr_dims({Dim(0)})}})),
            "operator 'pad': axis 0: size after cropping: 0 is greater than -1");
}

// The parameter for an element: per tensor, axis or block.
double parameter(const Trial& t, size_t operand, const Index& i) {
  Nd p(t.operands[operand]);
  size_t axis = static_cast<size_t>(t.integer("axis"));
  int64_t block = t.integer("block_size");
  if (block > 0) {
    Index at = i;
    at[axis] /= block;
    return p.at(at);
  }
  return p.data.size() == 1 ? p.data[0] : p.data[static_cast<size_t>(i[axis])];
}

// Scales are powers of two, so that quotients are exact and ties are ties.
Tensor scales(size_t i, const Sample& s, Random& random) {
  if (i != 1) return Tensor();
  DataType dtype = type_as<TensorType>(s.operands[1])->dtype;
  Tensor t = Tensor::empty(sample_shape(s, 1), dtype);
  for (int64_t k = 0; k < t.count(); ++k) {
    loop::scalar_store(dtype, static_cast<char*>(t.data()) + k * dtype.bytes(),
                       loop::float_bits(std::ldexp(1, static_cast<int>(random.between(-6, 2)))));
  }
  return t;
}

TEST(Quantize, RoundsAddsAndSaturates) {
  try_samples(
      "quantize_linear", 200,
      [](const Trial& t) {
        Nd x(t.operands[0]), want(x.shape);
        DataType to = t.operands[2] ? t.operands[2].dtype() : u8;
        ASSERT_EQ(t.results[0].dtype(), to);
        double low = to.is_signed_int() ? -std::ldexp(1, to.bits - 1) : 0;
        double high = std::ldexp(1, to.bits - (to.is_signed_int() ? 1 : 0)) - 1;
        if (to.is_float()) {
          high = narrow_value(to, static_cast<uint16_t>(format_of(to).end_of_numbers() - 1));
          low = -high;
        }
        for_each_index(x.shape, [&](const Index& i) {
          double v = x.at(i) / parameter(t, 1, i);
          if (!to.is_float()) v = std::nearbyint(v);
          if (t.operands[2]) v += parameter(t, 2, i);
          want.at(i) = std::isnan(v) ? v : std::clamp(v, low, high);
          if (to.is_float()) want.at(i) = round_to(to, want.at(i));
        });
        expect_equal(t.results[0], want);
      },
      scales);
}

TEST(Quantize, DequantizeScalesBack) {
  try_samples(
      "dequantize_linear", 200,
      [](const Trial& t) {
        Nd x(t.operands[0]), want(x.shape);
        for_each_index(x.shape, [&](const Index& i) {
          want.at(i) = (x.at(i) - (t.operands[2] ? parameter(t, 2, i) : 0)) * parameter(t, 1, i);
        });
        ASSERT_EQ(t.results[0].dtype(), t.operands[1].dtype());
        expect_equal(t.results[0], want);
      },
      scales);
}

TEST(Quantize, TypeErrorsNameWhatIsMissing) {
  auto x = tensor_type(f32, {2, 3});
  EXPECT_EQ(type_error("quantize_linear", {x, tensor_type(f32, {4})}, attrs({{"axis", 1}})),
            "operator 'quantize_linear': size of 'scale' and axis 1 of 'x': 4 and 3 differ");
  EXPECT_EQ(
      type_error("quantize_linear", {x, tensor_type(f32, {}), tensor_type(u32, {})}),
      "operator 'quantize_linear': operand 'zero_point' is u32, expected i8, i16, u8, u16, an "
      "integer of 2 or 4 bits or a float of 4 or 8 bits");
  EXPECT_EQ(type_error("quantize_linear", {x, tensor_type(f32, {})}, attrs({{"dtype", i32}})),
            "operator 'quantize_linear': the result would be i32, expected i8, i16, u8, u16, an "
            "integer of 2 or 4 bits or a float of 4 or 8 bits");
}

}  // namespace
}  // namespace tenon::graph

// Windows that slide along a row, of words of bytes and of numbers.
#include <gtest/gtest.h>

#include <algorithm>

#include "loop/schedule_agreement_testing.h"
#include "loop/walk.h"
#include "loop/word_product_testing.h"

namespace tenon::loop {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

// A window's words stay, shifted by what is new at each place, for every stride that leaves some of
// them; other windows are read anew.
TEST(Schedule, WindowsOfWordsSlide) {
  Agreement a;
  for (const int64_t stride : {1, 2, 3, 4}) {
    for (const int64_t words : {1, 2}) {
      for (const int64_t pad : {0, 2}) {
        for (const int64_t channels : {8, 36, 6}) {
          const SlidingWords s = {5, 12, channels, 2, words, stride, pad};
          SCOPED_TRACE(cat("stride ", stride, ", ", words, " words, ", channels, " channels"));
          const ComputeRef c = sliding_words(s, Dim(s.rows));
          const std::vector<Tensor> inputs = {a.random({s.rows, s.places, channels}, u8),
                                              a.random({s.height, words, channels}, i32),
                                              a.random({channels}, i32)};
          a.check(c, inputs, 0);
          a.check(sliding_words(s, n), inputs, 0);
          const bool slides = stride < 4 && channels % 4 == 0;
          EXPECT_EQ(to_text(*lower(*c, "k", {})).find("window") != std::string::npos, slides)
              << to_text(*lower(*c, "k", {}));
        }
      }
    }
  }
}

// Of each channel alone: y[r, p, c] = sum over h, k of x[r * stride + h - pad, ..., c] * w[h, k,
// c], plus a bias, with zeros around x.
ComputeRef depthwise(const Dim& rows, const Dim& places, int64_t channels, int64_t height,
                     int64_t width, int64_t stride, int64_t pad) {
  auto x = buffer("x", f32, {rows, places, Dim(channels)}),
       w = buffer("w", f32, {Dim(height), Dim(width), Dim(channels)}),
       bias = buffer("bias", f32, {Dim(channels)});
  const auto count = [&](const Dim& extent, int64_t kernel) {
    return floordiv(extent + 2 * pad - kernel, Dim(stride)) + 1;
  };
  const std::vector<Dim> shape = {count(rows, height), count(places, width), Dim(channels)};
  auto total = buffer("total", f32, shape), y = buffer("y", f32, shape);
  auto products = make<Stage>(*reduce_stage(
      total, Reduction::kSum, {Dim(height), Dim(width)}, [&](const Indices& i, const Indices& q) {
        const auto place = [&](size_t axis) {
          return i[axis] * index(stride) + q[axis] - index(pad);
        };
        const auto inside = [&](const ExprRef& e, const Dim& extent) {
          return binary(BinaryOp::kAnd, binary(BinaryOp::kLe, index(0), e),
                        binary(BinaryOp::kLt, e, dim_value(extent)));
        };
        const ExprRef both =
            binary(BinaryOp::kAnd, inside(place(0), rows), inside(place(1), places));
        ExprRef element = at(x, {place(0), place(1), i[2]});
        if (pad > 0) element = select(both, element, literal(f32, 0));
        return element * at(w, {q[0], q[1], i[2]});
      }));
  products->padding_is_skippable = true;
  auto biased = map_stage(y, [&](const Indices& i) { return at(total, i) + at(bias, {i[2]}); });
  return compute_of({x, w, bias}, {products, biased}, {y});
}

// Tiles of places, of which those at the ends leave out what is padding. Of symbolic sizes, and
// where more windows reach into padding than these have places, such are computed one by one.
TEST(Schedule, WindowsOfEachChannelAreTiles) {
  Agreement a;
  struct Size {
    int64_t places, channels, kernel, stride, pad;
  };
  for (const auto& [places, channels, kernel, stride, pad] :
       std::vector<Size>{{5, 16, 3, 1, 1},
                         {7, 20, 5, 1, 2},
                         {29, 16, 3, 1, 1},
                         {31, 34, 3, 2, 1},
                         {40, 16, 7, 1, 3},
                         {12, 18, 3, 1, 0},
                         {23, 16, 2, 3, 1},
                         {9, 16, 9, 1, 8},
                         {4, 16, 3, 1, 1},
                         {30, 12, 3, 1, 1},
                         {30, 17, 3, 1, 1},
                         {30, 30, 15, 1, 0},
                         {30, 30, 15, 1, 7}}) {
    SCOPED_TRACE(cat(places, " places, ", channels, " channels, ", kernel, " by ", kernel));
    const int64_t height = kernel > 9 ? 2 : kernel, rows = height + 1;
    const std::vector<Tensor> inputs = {a.random({rows, places, channels}),
                                        a.random({height, kernel, channels}), a.random({channels})};
    const ComputeRef c = depthwise(Dim(rows), Dim(places), channels, height, kernel, stride, pad);
    a.check(c, inputs, 1e-4);
    a.check(depthwise(n, m, channels, height, kernel, stride, pad), inputs, 1e-4);
    const bool in_tiles = to_text(*lower(*c, "k", {})).find("sums") == std::string::npos &&
                          to_text(*lower(*c, "k", {})).find("total") == std::string::npos;
    EXPECT_EQ(in_tiles, channels % 2 == 0 && pad < 7) << to_text(*lower(*c, "k", {}));
  }
}

// Tiles are written out, and channels that don't fill a vector need several of them: their places
// are fewer where the steps are many.
TEST(Schedule, TilesOfWindowsAreWrittenOutWithinBounds) {
  ScheduleOptions options;
  options.target = {64, 32};
  const auto lines = [&](int64_t places, int64_t channels, int64_t kernel) {
    const ComputeRef c = depthwise(Dim(9), Dim(places), channels, 3, kernel, 1, kernel / 2);
    const std::string text = to_text(*lower(*c, "k", options));
    return std::ranges::count(text, '\n');
  };
  for (const int64_t channels : {16, 34, 62}) {
    for (const int64_t kernel : {3, 7, 11, 15, 16}) {
      for (const int64_t places : {17, 64}) {
        EXPECT_LT(lines(places, channels, kernel), 6000)
            << places << " places, " << channels << " channels, 3 by " << kernel;
      }
    }
  }
  // Those of networks have as many places as registers can hold sums.
  for (const auto& [channels, kernel] : {std::pair{960, 3}, {58, 3}, {72, 5}, {120, 5}, {768, 7}}) {
    EXPECT_EQ(places_of_windows(f32, channels, kernel, options.target), 12);
  }
}

// A large product has tiles of fewer places or none, and so has one whose accesses are checked,
// each of which makes basic blocks.
TEST(Schedule, TilesOfLargeProductsOfWindowsAreFewer) {
  ScheduleOptions options;
  options.target = {64, 32};
  const auto with_product = [](const ComputeRef& c, int64_t more_nodes, bool in_bounds) {
    auto stage = make<Stage>(*c->stages[0]);
    const auto& product = static_cast<const Binary&>(*stage->body);
    ExprRef factor = product.a;
    for (int64_t i = 0; i < more_nodes; ++i) factor = factor + product.b;
    stage->body = factor * product.b;
    auto changed = make<Compute>(*c);
    changed->stages = {stage, c->stages[1]};
    changed->in_bounds = in_bounds;
    return changed;
  };
  const auto is_in_tiles = [&](const ComputeRef& c) {
    return to_text(*lower(*c, "k", options)).find("total") == std::string::npos;
  };
  const auto nodes = [&](const ComputeRef& c) {
    int64_t all = 0;
    for_each_stmt(lower(*c, "k", options)->body, [&](const StmtRef& s) {
      for (const ExprRef& e : direct_exprs(*s)) all += count_nodes(e, 1 << 20);
    });
    return all;
  };
  const ComputeRef wide = depthwise(Dim(9), Dim(56), 62, 3, 5, 1, 0),
                   narrow = depthwise(Dim(9), Dim(56), 64, 3, 3, 1, 0);
  EXPECT_TRUE(is_in_tiles(with_product(wide, 10, true)));
  for (const int64_t more : {100, 1000, 5000}) {
    EXPECT_LT(nodes(with_product(wide, more, true)), (1 << 18) + 100 * more) << more;
  }
  EXPECT_TRUE(is_in_tiles(with_product(narrow, 0, false)));
  EXPECT_FALSE(is_in_tiles(with_product(wide, 0, false)));
}

// The same of words.
TEST(Schedule, LargeWordsAreNotWrittenOut) {
  const SlidingWords s = {5, 12, 8, 2, 2, 1, 0};
  const ComputeRef c = sliding_words(s, Dim(s.rows));
  const auto slides_with_weights = [&](int64_t more_nodes) {
    auto stage = make<Stage>(*c->stages[0]);
    const auto& dot = static_cast<const Binary&>(*stage->body);
    ExprRef weights = dot.b;
    for (int64_t i = 0; i < more_nodes; ++i) weights = weights + dot.b;
    stage->body = binary(BinaryOp::kByteDot, dot.a, weights);
    auto changed = make<Compute>(*c);
    changed->stages = {stage, c->stages[1]};
    return to_text(*lower(*changed, "k", {})).find("window") != std::string::npos;
  };
  EXPECT_TRUE(slides_with_weights(100));
  EXPECT_FALSE(slides_with_weights(10'000));
}

// Sizes that no tensor has may stand in a file.
TEST(Schedule, WindowsOfTheLargestExtents) {
  for (const int64_t extent : {(int64_t{1} << 50) - 7, (int64_t{1} << 50) + 5, int64_t{1} << 40}) {
    for (const int64_t pad : {0, 1}) {
      check(*lower(*depthwise(Dim(4), Dim(extent), 16, 3, 3, 1, pad), "k", {}));
      check(*lower(*depthwise(Dim(extent), Dim(40), 16, 3, 3, 1, pad), "k", {}));
      check(*lower(*depthwise(Dim(4), Dim(40), extent / 2 * 2, 3, 3, 1, pad), "k", {}));
    }
  }
}

}  // namespace
}  // namespace tenon::loop

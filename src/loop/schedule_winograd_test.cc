// Convolutions by Winograd's algorithm, against their definition.
#include <gtest/gtest.h>

#include <limits>

#include "loop/convolution_testing.h"
#include "loop/tensors_testing.h"
#include "loop/walk.h"

namespace tenon::loop {
namespace {

std::vector<int64_t> sizes_of(const Buffer& b) {
  std::vector<int64_t> sizes;
  for (const Dim& d : b.shape) sizes.push_back(*d.as_const());
  return sizes;
}

struct WinogradConvolutions : testing::Test {
  std::vector<Tensor> inputs_of(const Compute& c) {
    std::vector<Tensor> inputs;
    for (const auto& b : c.inputs) inputs.push_back(random_tensor(f32, sizes_of(*b), &rng));
    return inputs;
  }
  static KernelRef lowered(const Compute& c, std::optional<int64_t> tile, int64_t vector_bytes) {
    ScheduleOptions options;
    options.target = {vector_bytes, vector_bytes >= 64 ? 32 : 16};
    options.winograd_tile = [&](const ConvolutionShape&) { return tile; };
    return lower(c, "k", options);
  }
  // Whether the tile makes a difference: the definition has none.
  static bool is_by_winograd(const Compute& c, int64_t tile, int64_t vector_bytes = 64) {
    return to_text(*lowered(c, tile, vector_bytes)) !=
           to_text(*lowered(c, std::nullopt, vector_bytes));
  }
  std::mt19937 rng{5};
};

TEST_F(WinogradConvolutions, AgreeWithTheDefinition) {
  for (const ConvolutionForm& f :
       std::vector<ConvolutionForm>{{{1, 4, 4, 16, 16}},
                                    {{2, 7, 5, 16, 32}},
                                    {{1, 9, 6, 32, 16}, 0},
                                    {{1, 6, 6, 16, 32}, 1, 16},
                                    {{3, 3, 10, 16, 16}, 1, 0, true},
                                    {{1, 8, 8, 16, 16}, 2},
                                    {{1, 1, 1, 16, 16}, 1},
                                    // The last panel has columns that the result lacks.
                                    {{1, 5, 5, 16, 24}, 1, 16}}) {
    const ComputeRef c = convolution(f);
    const std::vector<Tensor> inputs = inputs_of(*c);
    const Tensor expected = evaluate(*c, inputs)[0];
    for (const int64_t tile : {2, 4}) {
      for (const int64_t vector_bytes : {16, 64}) {
        SCOPED_TRACE(cat(f.shape.height, " x ", f.shape.width, ", tile ", tile, ", pad ", f.pad,
                         ", panel ", f.panel, ", ", vector_bytes, " bytes"));
        const KernelRef k = lowered(*c, tile, vector_bytes);
        // A single tile isn't a matrix product.
        const bool several = f.shape.images * f.shape.height * f.shape.width > 16 || tile == 2;
        EXPECT_EQ(is_by_winograd(*c, tile, vector_bytes), several && f.shape.height > 1);
        expect_close(evaluate(*k, inputs)[0], expected, 2e-3);
      }
    }
  }
}

// An infinity or a NaN reaches the results whose windows have it, and sums that overflow in between
// are found, too.
TEST_F(WinogradConvolutions, NonFiniteValuesStayInTheirWindows) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN(), large = 3e38f;
  const ComputeRef c = convolution({{1, 6, 6, 16, 16}});
  for (const float value : {infinity, -infinity, nan, large}) {
    std::vector<Tensor> inputs = inputs_of(*c);
    float* const x = static_cast<float*>(inputs[0].data());
    x[(2 * 6 + 4) * 16 + 3] = value;
    if (value == large) {
      // Weights so small that the definition's sums are finite.
      auto* const w = static_cast<float*>(inputs[1].data());
      for (int64_t i = 0; i < inputs[1].count(); ++i) w[i] *= 0.01f;
    }
    const Tensor expected = evaluate(*c, inputs)[0];
    for (const int64_t tile : {2, 4}) {
      SCOPED_TRACE(cat(value, ", tile ", tile));
      const KernelRef k = lowered(*c, tile, 64);
      EXPECT_TRUE(is_by_winograd(*c, tile));
      expect_close(evaluate(*k, inputs)[0], expected, 2e-3);
    }
  }
}

TEST_F(WinogradConvolutions, TakeAnyNumberOfImages) {
  const ConvolutionForm f = {{0, 5, 6, 16, 32}, 1, 16};
  const ComputeRef any = convolution(f);
  for (const int64_t images : {1, 3}) {
    ConvolutionForm known = f;
    known.shape.images = images;
    const ComputeRef c = convolution(known);
    const std::vector<Tensor> inputs = inputs_of(*c);
    const Tensor expected = evaluate(*c, inputs)[0];
    for (const int64_t tile : {2, 4}) {
      SCOPED_TRACE(cat(images, " images, tile ", tile));
      const KernelRef k = lowered(*any, tile, 64);
      EXPECT_TRUE(is_by_winograd(*any, tile));
      expect_close(evaluate(*k, inputs)[0], expected, 2e-3);
    }
  }
}

TEST_F(WinogradConvolutions, AreOnlyThoseOfTheForm) {
  const auto is_taken = [](const ComputeRef& c) { return is_by_winograd(*c, 2); };
  EXPECT_TRUE(is_taken(convolution({{1, 8, 8, 16, 16}})));
  // Channels or filters that don't fill vectors.
  EXPECT_FALSE(is_taken(convolution({{1, 8, 8, 24, 16}})));
  EXPECT_FALSE(is_taken(convolution({{1, 8, 8, 16, 24}})));

  const auto changed = [](const std::function<void(Stage*)>& change) {
    const ComputeRef c = convolution({{1, 8, 8, 16, 16}});
    auto products = make<Stage>(*c->stages[0]);
    change(products.get());
    return whole_kernel(c->inputs, {products, c->stages[1]}, c->outputs, true);
  };
  EXPECT_TRUE(is_taken(changed([](Stage*) {})));
  EXPECT_FALSE(is_taken(changed([](Stage* s) { s->may_use_winograd = false; })));
  // The place of a tap is used in another way than that of the window, or outside of the load.
  EXPECT_FALSE(is_taken(changed([](Stage* s) {
    s->body =
        substitute(s->body, {{s->reduce_axes[0].get(), ExprRef(s->reduce_axes[0]) * index(2)}});
  })));
  EXPECT_FALSE(is_taken(changed([](Stage* s) {
    const auto& product = static_cast<const Binary&>(*s->body);
    s->body = (product.a + cast(f32, s->reduce_axes[0])) * product.b;
  })));
  // Accesses that are checked.
  const ComputeRef c = convolution({{1, 8, 8, 16, 16}});
  EXPECT_FALSE(is_taken(whole_kernel(c->inputs, c->stages, c->outputs, false)));
}

TEST(Tiling, WinogradTilesAreLargeWhereTheImageIs) {
  EXPECT_EQ(measured_winograd_tile({1, 56, 56, 64, 64}), 4);
  EXPECT_EQ(measured_winograd_tile({1, 14, 14, 256, 256}), 2);
  EXPECT_EQ(measured_winograd_tile({1, 7, 7, 512, 512}), std::nullopt);
  EXPECT_EQ(measured_winograd_tile({1, 14, 14, 16, 48}), std::nullopt);
}

}  // namespace
}  // namespace tenon::loop

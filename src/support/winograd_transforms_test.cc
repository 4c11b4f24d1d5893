#include "support/winograd_transforms.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

// With one input and one tap of 1, the products summed by A^T are the definition's.
template <int kTile>
void expect_exact_transforms() {
  using Transforms = WinogradTransforms<kTile>;
  constexpr int kIn = kTile + 2;
  for (int input = 0; input < kIn; ++input) {
    for (int tap = 0; tap < 3; ++tap) {
      double d[kIn] = {}, g[3] = {}, v[kIn], u[kIn], y[kTile];
      d[input] = g[tap] = 1;
      Transforms::template input<double>(d, 1, v, 1);
      Transforms::template filter<double>(g, 1, u, 1);
      for (int i = 0; i < kIn; ++i) v[i] *= u[i];
      Transforms::template output<double>(v, 1, y, 1);
      for (int i = 0; i < kTile; ++i)
        EXPECT_NEAR(y[i], input == i + tap, 1e-15) << input << " " << tap << " " << i;
    }
  }
}

TEST(WinogradTransforms, ComputeCorrelations) {
  expect_exact_transforms<2>();
  expect_exact_transforms<4>();
}

}  // namespace
}  // namespace tenon

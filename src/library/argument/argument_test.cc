#include "library/argument/argument.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "object/narrow_float.h"

namespace tenon::argument {
namespace {

TEST(ElementKey, OrdersLikeTheElements) {
  std::vector<double> values = {-INFINITY, -1e30, -2.5, -1,   -0.0,     0.0,
                                1e-300,    1,     2.5,  1e30, INFINITY, NAN};
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < values.size(); ++j) {
      float a = static_cast<float>(values[i]), b = static_cast<float>(values[j]);
      bool less = std::isnan(b) ? !std::isnan(a) : a < b;
      EXPECT_EQ(element_key(f32, &a) < element_key(f32, &b), less) << a << " " << b;
      bool less64 = std::isnan(values[j]) ? !std::isnan(values[i]) : values[i] < values[j];
      EXPECT_EQ(element_key(f64, &values[i]) < element_key(f64, &values[j]), less64);
    }
  }
  for (int64_t a : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{7}, INT64_MAX}) {
    for (int64_t b : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{7}, INT64_MAX}) {
      EXPECT_EQ(element_key(i64, &a) < element_key(i64, &b), a < b);
      int8_t c = static_cast<int8_t>(a), d = static_cast<int8_t>(b);
      EXPECT_EQ(element_key(i8, &c) < element_key(i8, &d), c < d);
    }
  }
}

TEST(ElementKey, OrdersAllNarrowFloatsAndIntegersOfFewBits) {
  std::vector<uint16_t> bits(1 << 16);
  std::iota(bits.begin(), bits.end(), uint16_t{0});
  std::vector<uint64_t> keys(bits.size());
  element_keys(f16, bits.data(), sizeof(uint16_t), keys);
  std::ranges::sort(bits, {}, [&](uint16_t b) { return keys[b]; });
  for (size_t i = 1; i < bits.size(); ++i) {
    const double a = narrow_value(f16, bits[i - 1]), b = narrow_value(f16, bits[i]);
    ASSERT_TRUE(std::isnan(b) || a <= b) << a << " " << b;
    if (a == b || std::isnan(a)) {
      ASSERT_EQ(keys[bits[i - 1]], keys[bits[i]]);
    }
  }
  for (int8_t a = -8; a < 8; ++a) {
    for (int8_t b = -8; b < 8; ++b) EXPECT_EQ(element_key(i4, &a) < element_key(i4, &b), a < b);
  }
}

TEST(AreNonzero, OfEachKind) {
  const auto found = [](DataType t, const auto& elements) {
    std::vector<uint8_t> flags(elements.size());
    are_nonzero(t, elements.data(), flags);
    return std::vector<int>(flags.begin(), flags.end());
  };
  using Found = std::vector<int>;
  EXPECT_EQ(found(f32, std::vector<float>{0, -0.0F, NAN, 1e-45F, -2}), (Found{0, 0, 1, 1, 1}));
  EXPECT_EQ(found(f64, std::vector<double>{0, -0.0, NAN, 5e-324, -2}), (Found{0, 0, 1, 1, 1}));
  EXPECT_EQ(found(f16, std::vector<uint16_t>{0, 0x8000, 0x7e00, 1}), (Found{0, 0, 1, 1}));
  EXPECT_EQ(found(i64, std::vector<int64_t>{0, INT64_MIN, 1}), (Found{0, 1, 1}));
  EXPECT_EQ(found(u8, std::vector<uint8_t>{0, 1, 255}), (Found{0, 1, 1}));
  EXPECT_EQ(found(c64, std::vector<std::array<float, 2>>{{0, -0.0F}, {0, 1}, {NAN, 0}}),
            (Found{0, 1, 1}));
}

}  // namespace
}  // namespace tenon::argument

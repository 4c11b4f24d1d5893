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
  for (const DataType t :
       {f16, bf16, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu, f4e2m1fn}) {
    SCOPED_TRACE(to_text(t));
    std::vector<uint16_t> all(size_t{1} << t.bits);
    std::iota(all.begin(), all.end(), uint16_t{0});
    const auto key = [&](uint16_t bits) { return element_key(t, &bits); };
    std::ranges::sort(all, {}, key);
    for (size_t i = 1; i < all.size(); ++i) {
      const double a = narrow_value(t, all[i - 1]), b = narrow_value(t, all[i]);
      ASSERT_TRUE(std::isnan(b) || a <= b) << a << " " << b;
      ASSERT_EQ(key(all[i - 1]) == key(all[i]), a == b || std::isnan(a)) << a << " " << b;
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

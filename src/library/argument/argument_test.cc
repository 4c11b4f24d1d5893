#include "library/argument/argument.h"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace tenon::argument

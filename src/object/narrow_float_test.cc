// Every number of the narrow floats, and rounding to them, against their definitions.
#include "object/narrow_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tenon {
namespace {

struct Definition {
  DataType dtype;
  int exponent_bits, fraction_bits, bias;
  std::vector<unsigned> infinities, nans;  // bits
  double greatest;
};

std::vector<unsigned> between(unsigned first, unsigned last) {
  std::vector<unsigned> out;
  for (unsigned i = first; i <= last; ++i) out.push_back(i);
  return out;
}

std::vector<unsigned> joined(std::vector<unsigned> a, const std::vector<unsigned>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// IEEE 754, "8-bit Numerical Formats" (arXiv 2206.02915) and "FP8 Formats" (arXiv 2209.05433),
// OCP's Microscaling Formats.
std::vector<Definition> definitions() {
  return {
      {f16,
       5,
       10,
       15,
       {0x7c00, 0xfc00},
       joined(between(0x7c01, 0x7fff), between(0xfc01, 0xffff)),
       65504},
      {bf16,
       8,
       7,
       127,
       {0x7f80, 0xff80},
       joined(between(0x7f81, 0x7fff), between(0xff81, 0xffff)),
       0x1.fep127},
      {f8e4m3fn, 4, 3, 7, {}, {0x7f, 0xff}, 448},
      {f8e4m3fnuz, 4, 3, 8, {}, {0x80}, 240},
      {f8e5m2, 5, 2, 15, {0x7c, 0xfc}, {0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff}, 57344},
      {f8e5m2fnuz, 5, 2, 16, {}, {0x80}, 57344},
      {f4e2m1fn, 2, 1, 1, {}, {}, 6},
  };
}

bool has(const std::vector<unsigned>& all, unsigned bits) {
  return std::find(all.begin(), all.end(), bits) != all.end();
}

double value_by(const Definition& d, unsigned bits) {
  const unsigned sign = bits >> (d.exponent_bits + d.fraction_bits);
  const int exponent = static_cast<int>(bits >> d.fraction_bits & ((1u << d.exponent_bits) - 1));
  const double fraction = std::ldexp(bits & ((1u << d.fraction_bits) - 1), -d.fraction_bits);
  double v = exponent == 0 ? std::ldexp(fraction, 1 - d.bias)
                           : std::ldexp(1 + fraction, exponent - d.bias);
  if (has(d.infinities, bits)) v = INFINITY;
  if (has(d.nans, bits)) v = NAN;
  return sign ? -v : v;
}

bool same(double a, double b) {
  return std::isnan(b) ? std::isnan(a) : a == b && std::signbit(a) == std::signbit(b);
}

TEST(NarrowFloat, EveryNumberIsTheOneOfItsDefinition) {
  for (const Definition& d : definitions()) {
    double greatest = 0;
    for (unsigned bits = 0; bits < 1u << d.dtype.bits; ++bits) {
      const double v = narrow_value(d.dtype, static_cast<uint16_t>(bits));
      ASSERT_TRUE(same(v, value_by(d, bits))) << to_text(d.dtype) << " " << bits << " is " << v;
      ASSERT_TRUE(same(round_to(d.dtype, v), v)) << to_text(d.dtype) << " " << v;
      if (std::isfinite(v)) {
        ASSERT_EQ(narrow_bits(d.dtype, v), bits) << to_text(d.dtype) << " " << v;
        greatest = std::max(greatest, v);
      } else {
        ASSERT_TRUE(same(narrow_value(d.dtype, narrow_bits(d.dtype, v)), v));
      }
    }
    EXPECT_EQ(greatest, d.greatest) << to_text(d.dtype);
  }
}

// The nearest of all numbers, found by search; of two, the one whose last bit is 0. The number
// after the greatest one is what overflows.
double nearest(const Definition& d, const std::vector<double>& numbers, double x) {
  const double magnitude = std::fabs(x);
  const auto above = std::upper_bound(numbers.begin(), numbers.end(), magnitude);
  const auto index = static_cast<size_t>(above - numbers.begin()) - 1;
  const double low = numbers[index];
  const double high =
      index + 1 < numbers.size() ? numbers[index + 1] : 2 * low - numbers[index - 1];
  const double to_low = magnitude - low, to_high = high - magnitude;
  const bool up = to_high < to_low || (to_high == to_low && index % 2 == 1);
  double v = up ? high : low;
  if (v > d.greatest) v = d.dtype == f4e2m1fn ? d.greatest : d.infinities.empty() ? NAN : INFINITY;
  const bool unsigned_zero = d.dtype == f8e4m3fnuz || d.dtype == f8e5m2fnuz;
  return unsigned_zero && v == 0 ? 0 : std::copysign(v, x);
}

TEST(NarrowFloat, RoundsToTheNearestNumber) {
  std::mt19937_64 random(5);
  for (const Definition& d : definitions()) {
    std::vector<double> numbers;  // by their bits: they increase
    for (unsigned bits = 0; bits < 1u << (d.dtype.bits - 1); ++bits) {
      const double v = narrow_value(d.dtype, static_cast<uint16_t>(bits));
      if (std::isfinite(v)) numbers.push_back(v);
    }
    auto expect_nearest = [&](double x) {
      ASSERT_TRUE(same(round_to(d.dtype, x), nearest(d, numbers, x)))
          << to_text(d.dtype) << " of " << x << " is " << round_to(d.dtype, x) << ", not "
          << nearest(d, numbers, x);
    };
    for (size_t i = 0; i + 1 < numbers.size(); ++i) {
      const double middle = (numbers[i] + numbers[i + 1]) / 2;
      for (double x : {middle, std::nextafter(middle, 0), std::nextafter(middle, INFINITY)}) {
        expect_nearest(x);
        expect_nearest(-x);
      }
    }
    const double beyond = numbers.back() + (numbers.back() - *(numbers.end() - 2)) / 2;
    for (double x : {beyond, std::nextafter(beyond, 0), 2 * beyond, 1e308}) expect_nearest(x);
    for (int i = 0; i < 20000; ++i) {
      const double x = std::ldexp(1 + std::ldexp(static_cast<double>(random() >> 12), -52),
                                  static_cast<int>(random() % 300) - 150);
      expect_nearest(i % 2 ? x : -x);
    }
  }
}

TEST(NarrowFloat, InfinityAndNanWhereATypeLacksThem) {
  EXPECT_TRUE(std::isnan(round_to(f8e4m3fn, INFINITY)));
  EXPECT_TRUE(std::isnan(round_to(f8e4m3fnuz, -INFINITY)));
  EXPECT_EQ(round_to(f8e5m2, -INFINITY), -INFINITY);
  EXPECT_EQ(round_to(f4e2m1fn, -INFINITY), -6);
  EXPECT_EQ(round_to(f4e2m1fn, NAN), 0);
  EXPECT_EQ(narrow_bits(f8e4m3fn, -NAN), 0xff);
  EXPECT_EQ(narrow_bits(f8e5m2, NAN), 0x7e);
  EXPECT_EQ(narrow_bits(f8e4m3fnuz, -NAN), 0x80);
}

TEST(NarrowFloat, PowersOfTwo) {
  for (unsigned bits = 0; bits < 255; ++bits) {
    const double v = std::ldexp(1, static_cast<int>(bits) - 127);
    ASSERT_EQ(narrow_value(f8e8m0fnu, static_cast<uint16_t>(bits)), v);
    ASSERT_EQ(narrow_bits(f8e8m0fnu, v), bits);
    ASSERT_EQ(narrow_bits(f8e8m0fnu, 1.5 * v), bits + 1);  // ties go up
    ASSERT_EQ(narrow_bits(f8e8m0fnu, std::nextafter(1.5 * v, 0)), bits);
  }
  EXPECT_TRUE(std::isnan(narrow_value(f8e8m0fnu, 255)));
  for (double x : std::vector<double>{0, -0.0, -1, INFINITY, -INFINITY, NAN, 1e300})
    EXPECT_EQ(narrow_bits(f8e8m0fnu, x), 255) << x;
  EXPECT_EQ(narrow_bits(f8e8m0fnu, 1e-300), 0);
}

}  // namespace
}  // namespace tenon

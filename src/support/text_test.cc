#include "support/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon {
namespace {

TEST(Text, JoinsPrintableValues) {
  EXPECT_EQ(cat("a", 1, '-', -2, true, std::string("s"), uint8_t{200}, size_t{7}),
            "a1--2trues2007");
  EXPECT_EQ(cat(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(cat(), "");
}

TEST(Text, WritesFloatsShortAndExact) {
  EXPECT_EQ(cat(0.1), "0.1");
  EXPECT_EQ(cat(0.1f), "0.1");
  EXPECT_EQ(cat(-0.0), "-0");
  EXPECT_EQ(cat(std::nan("")), "nan");
  EXPECT_EQ(cat(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Text, Hexadecimal) {
  EXPECT_EQ(hex(0x1a40), "0x1a40");
}

TEST(Text, QuotesAndEscapes) {
  EXPECT_EQ(quoted("a\"b\\\n\x01"), "\"a\\\"b\\\\\\n\\x01\"");
  EXPECT_EQ(printable("a\nb\t", true), "a\nb\\t");
  EXPECT_EQ(printable("é"), "é");
}

TEST(Text, FindsTheNearestName) {
  std::vector<std::string> names = {"matmul", "softmax", "add"};
  EXPECT_EQ(nearest("matmull", names), "matmul");
  EXPECT_EQ(nearest("sotfmax", names), "softmax");
  EXPECT_EQ(nearest("convolution", names), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), names), "");
}

TEST(Text, Joins) {
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join({}, ", "), "");
}

}  // namespace
}  // namespace tenon

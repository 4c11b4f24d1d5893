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

TEST(Text, CountsInTheSingularAndPlural) {
  EXPECT_EQ(counted(0, "node"), "0 nodes");
  EXPECT_EQ(counted(1, "node"), "1 node");
  EXPECT_EQ(counted(2, "node"), "2 nodes");
}

TEST(Text, SaysBytesInTheUnitThatReadsBest) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1), "1 byte");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1536), "1536 bytes (1.5 KB)");
  EXPECT_EQ(bytes_text(10 << 20), "10485760 bytes (10 MB)");
  EXPECT_EQ(bytes_text(uint64_t{5} << 30), "5368709120 bytes (5 GB)");
}

TEST(Text, QuotesAndEscapes) {
  EXPECT_EQ(quoted("a\"b\\\n\x01"), "\"a\\\"b\\\\\\n\\x01\"");
  EXPECT_EQ(printable("a\nb\t", true), "a\nb\\t");
  EXPECT_EQ(printable("é€😀"), "é€😀");
}

TEST(Text, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31m"),
            "a\\xc2\\x9b31m");                // U+009B begins a sequence
  EXPECT_EQ(printable("\x9b"), "\\x9b");      // as does its byte alone
  EXPECT_EQ(printable("\u202e\u2066\u2028"),  // text from right to left
            "\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xe2\\x80\\xa8");
  EXPECT_EQ(quoted("\xc2\x9b\\"), "\"\\xc2\\x9b\\\\\"");
}

TEST(Text, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xc3"), "\\xc3");           // truncated
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");  // overlong
  EXPECT_EQ(printable("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xff"), "\\xff");
}

TEST(Text, FindsTheNearestName) {
  std::vector<std::string> names = {"matmul", "softmax", "add"};
  EXPECT_EQ(nearest("matmull", names), "matmul");
  EXPECT_EQ(nearest("sotfmax", names), "softmax");
  EXPECT_EQ(nearest("convolution", names), "");
  EXPECT_EQ(nearest("soft", names), "softmax");
  EXPECT_EQ(nearest("so", names), "");
  EXPECT_EQ(nearest("all", {"knl"}), "");
  EXPECT_EQ(nearest("knn", {"knl"}), "knl");
  EXPECT_EQ(nearest("rnu", {"asm", "run"}), "run");
  EXPECT_EQ(nearest(std::string(100000, 'a'), names), "");
}

TEST(Text, Joins) {
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Text, ListsTheFirstOfManyParts) {
  EXPECT_EQ(join_some({"a", "b"}), "a, b");
  EXPECT_EQ(join_some(std::vector<std::string>(8, "a")), "a, a, a, a, a, a, a, a");
  EXPECT_EQ(join_some(std::vector<std::string>(20, "a")), "a, a, a, a, a, a, a, a, and 12 more");
}

TEST(Text, ReadsBytesInHexadecimal) {
  EXPECT_EQ(bytes_of_hex("00fFa1"), std::string("\x00\xff\xa1", 3));
  EXPECT_EQ(bytes_of_hex(""), "");
  for (const char* bad : {"0", "0g", "0x", " 00", "-1"}) EXPECT_EQ(bytes_of_hex(bad), std::nullopt);
}

}  // namespace
}  // namespace tenon

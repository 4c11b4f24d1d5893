#include "support/utf8.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Utf8, ReadsBackTheCodePointsThatItWrites) {
  for (const uint32_t point :
       {0u, 0x7fu, 0x80u, 0x7ffu, 0x800u, 0xd7ffu, 0xe000u, 0xffffu, 0x10000u, 0x10ffffu}) {
    std::string text;
    append_utf8(text, point);
    EXPECT_EQ(utf8_length(text), text.size());
    std::string_view rest = text;
    EXPECT_EQ(take_code_point(rest), point);
    EXPECT_TRUE(rest.empty());
  }
}

TEST(Utf8, RefusesWhatIsNoCharacter) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  EXPECT_FALSE(is_utf8("\x80"));              // a continuation alone
  EXPECT_FALSE(is_utf8("\xc3"));              // cut short
  EXPECT_FALSE(is_utf8("\xc0\x80"));          // longer than needed
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));      // a surrogate
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));  // beyond U+10FFFF
}

}  // namespace
}  // namespace tenon

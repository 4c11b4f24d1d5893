#include "support/keyed_hash.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

// What Python's hash() of bytes, which is SipHash-1-3, gives with PYTHONHASHSEED=0.
TEST(KeyedHash, IsSipHash) {
  const HashKey zero{};
  EXPECT_EQ(siphash(zero, "a"), 0x407448d2b89b1813u);
  EXPECT_EQ(siphash(zero, "tenon"), 0xca7b6e1cdac1fcc1u);
  EXPECT_EQ(siphash(zero, "12345678"), 0x3489982430560a87u);
  EXPECT_EQ(siphash(zero, "The quick brown fox"), 0x975e410714568333u);
}

TEST(KeyedHash, DependsOnTheWholeKeyAndAllBytes) {
  EXPECT_NE(siphash({1, 0}, "a"), siphash({0, 0}, "a"));
  EXPECT_NE(siphash({0, 1}, "a"), siphash({0, 0}, "a"));
  EXPECT_NE(keyed_hash("a"), keyed_hash(std::string_view("a\0", 2)));
  EXPECT_NE(keyed_hash(1, 2), keyed_hash(2, 1));
}

TEST(KeyedHash, HasASecretKeyThatStays) {
  EXPECT_EQ(keyed_hash("tenon"), keyed_hash("tenon"));
  EXPECT_EQ(keyed_hash(1, 2), keyed_hash(1, 2));
  EXPECT_NE(keyed_hash("tenon"), siphash({}, "tenon"));
}

}  // namespace
}  // namespace tenon

#include "graph/pass/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tenon::graph {
namespace {

struct Taken {
  Lifetime life;
  int64_t offset, bytes;
};

bool alive_together(Lifetime a, Lifetime b) {
  return a.first <= b.last && b.first <= a.last;
}

// The lowest free offset, found by trying every end of a value that is alive.
int64_t lowest(const std::vector<Taken>& all, Lifetime life, int64_t bytes) {
  auto is_free = [&](int64_t offset) {
    return std::ranges::none_of(all, [&](const Taken& t) {
      return alive_together(t.life, life) && offset < t.offset + t.bytes &&
             t.offset < offset + bytes;
    });
  };
  if (is_free(0)) return 0;
  int64_t best = INT64_MAX;
  for (const Taken& t : all) {
    if (is_free(t.offset + t.bytes)) best = std::min(best, t.offset + t.bytes);
  }
  return best;
}

TEST(Arena, FindsTheLowestFreeOffset) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const int64_t bindings = 1 + static_cast<int64_t>(random() % 40);
    Arena arena(bindings);
    std::vector<Taken> all;
    int64_t most = 0;
    for (int i = 0; i < 60; ++i) {
      const auto a = static_cast<int64_t>(random() % bindings);
      const auto b = static_cast<int64_t>(random() % bindings);
      const Lifetime life{std::min(a, b), std::max(a, b)};
      const int64_t bytes = 64 * (1 + static_cast<int64_t>(random() % 5));
      const int64_t offset = arena.find(life, bytes);
      ASSERT_EQ(offset, lowest(all, life, bytes));
      arena.take(life, offset, bytes);
      all.push_back({life, offset, bytes});
      most = std::max(most, offset + bytes);
    }
    EXPECT_EQ(arena.bytes(), most);
  }
}

TEST(Arena, StacksValuesThatAreAliveWithVeryManyOthers) {
  constexpr int64_t kMany = 600;
  Arena arena(10);
  for (int64_t i = 0; i < kMany; ++i) {
    const int64_t offset = arena.find({2, 7}, 64);
    ASSERT_EQ(offset, 64 * i);
    arena.take({2, 7}, offset, 64);
  }
  EXPECT_EQ(arena.find({0, 1}, 64), 0);
  EXPECT_EQ(arena.find({8, 9}, 64), 0);
  for (const Lifetime life : {Lifetime{0, 2}, Lifetime{4, 4}, Lifetime{7, 9}, Lifetime{0, 9}}) {
    EXPECT_EQ(arena.find(life, 64), 64 * kMany);
  }
  // Values that aren't alive together still share memory.
  arena.take({4, 4}, 64 * kMany, 64);
  EXPECT_EQ(arena.find({5, 5}, 64), 64 * kMany);
  EXPECT_EQ(arena.find({3, 4}, 64), 64 * (kMany + 1));
}

}  // namespace
}  // namespace tenon::graph

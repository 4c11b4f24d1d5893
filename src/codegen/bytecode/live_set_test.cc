#include "codegen/bytecode/live_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tenon::codegen {
namespace {

std::vector<uint32_t> missing(const LiveSets& sets, LiveSets::Set a, LiveSets::Set b) {
  std::vector<uint32_t> out;
  sets.for_each_missing(a, b, [&](uint32_t r) { out.push_back(r); });
  return out;
}

TEST(LiveSets, AgreeWithOrdinarySets) {
  constexpr uint32_t kRegisters = 5000;
  LiveSets sets(kRegisters);
  std::mt19937 random(1);
  std::vector<std::pair<LiveSets::Set, std::set<uint32_t>>> known = {{0, {}}};
  for (int step = 0; step < 2000; ++step) {
    auto [set, model] = known[random() % known.size()];
    const uint32_t r = random() % kRegisters;
    switch (random() % 3) {
      case 0:
        set = sets.insert(set, r);
        model.insert(r);
        break;
      case 1: {
        const uint32_t gone = model.empty() ? r : *model.begin();
        set = sets.erase(set, gone);
        model.erase(gone);
        break;
      }
      default: {
        const auto& [other, other_model] = known[random() % known.size()];
        set = sets.unite(set, other);
        model.insert(other_model.begin(), other_model.end());
      }
    }
    EXPECT_EQ(missing(sets, set, 0), std::vector<uint32_t>(model.begin(), model.end()));
    EXPECT_EQ(sets.contains(set, r), model.contains(r));
    const auto& [other, other_model] = known[random() % known.size()];
    std::vector<uint32_t> expected;
    std::ranges::set_difference(model, other_model, std::back_inserter(expected));
    EXPECT_EQ(missing(sets, set, other), expected);
    known.emplace_back(set, model);
  }
}

TEST(LiveSets, AreEmptyAgainWhenAllIsErased) {
  LiveSets sets(100'000);
  LiveSets::Set set = sets.insert(sets.insert(0, 3), 99'999);
  EXPECT_EQ(sets.erase(sets.erase(set, 99'999), 3), 0u);
}

TEST(LiveSets, ShareWhatStaysTheSame) {
  LiveSets sets(1000);
  const LiveSets::Set set = sets.insert(sets.insert(0, 7), 700);
  EXPECT_EQ(sets.insert(set, 7), set);
  EXPECT_EQ(sets.erase(set, 8), set);
  EXPECT_EQ(sets.unite(set, sets.insert(0, 700)), set);
}

}  // namespace
}  // namespace tenon::codegen

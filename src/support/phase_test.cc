#include "support/phase.h"

#include <gtest/gtest.h>

#include <thread>

namespace tenon {
namespace {

void wait() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST(Phase, RowsAddUpByNameInTheOrderOfTheirBeginnings) {
  PhaseTimes times;
  {
    Phase outer("outer");
    wait();
    Phase inner("inner");
    wait();
  }
  { Phase again("outer"); }
  ASSERT_EQ(times.rows().size(), 2u);
  EXPECT_EQ(times.rows()[0].name, "outer");
  EXPECT_EQ(times.rows()[1].name, "inner");
  EXPECT_GE(times.rows()[0].seconds, 0.002);
  EXPECT_GE(times.rows()[1].seconds, 0.002);
}

TEST(Phase, TellsWhoAsksHowLongItTook) {
  double alone = 0, collected = 0;
  {
    Phase phase("alone", Phase::Within::OwnRows, &alone);
    wait();
  }
  EXPECT_GE(alone, 0.002);
  PhaseTimes times;
  {
    Phase outer("outer", Phase::Within::Included);
    Phase inner("inner", Phase::Within::OwnRows, &collected);
    wait();
  }
  EXPECT_GE(collected, 0.002);
}

TEST(Phase, AnInnerPhaseIsNotCountedTwice) {
  PhaseTimes times;
  const auto begin = std::chrono::steady_clock::now();
  {
    Phase outer("outer");
    Phase inner("inner");
    wait();
  }
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(times.rows()[0].seconds + times.rows()[1].seconds, whole.count());
}

TEST(Phase, APhaseCanIncludeThoseWithinIt) {
  PhaseTimes times;
  {
    Phase outer("outer", Phase::Within::Included);
    Phase inner("inner");
    wait();
  }
  ASSERT_EQ(times.rows().size(), 1u);
  EXPECT_GE(times.rows()[0].seconds, 0.002);
}

TEST(Phase, NobodyNeedsToAsk) {
  Phase phase("unseen");
  PhaseTimes times;
  std::thread([] { Phase elsewhere("of another thread"); }).join();
  EXPECT_TRUE(times.rows().empty());
}

}  // namespace
}  // namespace tenon

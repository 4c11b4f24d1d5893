#include "support/poll.h"

#include <gtest/gtest.h>

#include <thread>

namespace tenon {
namespace {

struct Counting final : Poller {
  int polls = 0;
  void poll() override { ++polls; }
};

TEST(Poll, AsksTheThreadsInnermostPoller) {
  poll();  // nothing can stop this
  Counting outer, inner;
  Poller::Scope scope(&outer);
  {
    Poller::Scope within(&inner);
    poll();
  }
  poll();
  std::thread([] { EXPECT_EQ(Poller::current(), nullptr); }).join();
  EXPECT_EQ(inner.polls, 1);
  EXPECT_EQ(outer.polls, 1);
}

TEST(Ticker, AsksByStepsAndByBytes) {
  Counting poller;
  Poller::Scope scope(&poller);
  Ticker steps, bytes;
  for (int i = 0; i < 10'000; ++i) steps.tick();
  EXPECT_EQ(poller.polls, 2);
  poller.polls = 0;
  for (int i = 0; i < 10; ++i) bytes.tick(size_t{4} << 20);
  EXPECT_EQ(poller.polls, 10);
}

}  // namespace
}  // namespace tenon

#include "device/work_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "device/host_check.h"
#include "object/array.h"
#include "object/function.h"
#include "support/error_testing.h"

namespace tenon {
namespace {

using std::chrono::nanoseconds;
using testing::HasSubstr;

TEST(WorkBudget, StopsAtItsDeadline) {
  const auto stopped = [](nanoseconds deadline) {
    WorkBudget budget({.deadline = deadline}, "compiling", "m.onnx");
    const WorkBudget::Scope scope(&budget);
    return failure_of([] {
      for (;;) poll();
    });
  };
  const std::string error = stopped(nanoseconds(0));
  EXPECT_THAT(error, HasSubstr("compiling m.onnx ran past its deadline"));
  EXPECT_THAT(error, HasSubstr("expected  at most 0 ms"));
  EXPECT_THAT(error, HasSubstr("help: raise the deadline for compiling"));
  EXPECT_THAT(stopped(nanoseconds(100'000)), HasSubstr("expected  at most 0.1 ms"));
}

TEST(WorkBudget, StopsWhenItIsCancelled) {
  std::atomic<bool> stop = false;
  WorkBudget budget({.cancel = &stop}, "compiling", "m.onnx");
  WorkBudget::Scope scope(&budget);
  EXPECT_EQ(failure_of([] { poll(); }), "no error");
  stop = true;
  EXPECT_THAT(failure_of([] { poll(); }), HasSubstr("compiling m.onnx was cancelled"));
}

// Also if a budget without limits is between them.
TEST(WorkBudget, StopsWithTheWorkAroundIt) {
  std::atomic<bool> stop = false;
  WorkBudget outer({.cancel = &stop}, "compiling", "m.onnx");
  WorkBudget::Scope scope(&outer);
  WorkBudget middle({}, "loading", "k.tnx");
  WorkBudget::Scope inside(&middle);
  WorkBudget inner({}, "reading", "w");
  inner.poll();
  stop = true;
  EXPECT_THAT(failure_of([&] { inner.poll(); }), HasSubstr("compiling m.onnx was cancelled"));
}

TEST(WorkBudget, CountsTensorsAndObjectsForAsLongAsTheyLive) {
  WorkBudget budget({.memory = 1 << 20}, "compiling", "m.onnx");
  WorkBudget::Scope scope(&budget);
  auto tensor = [] { return Tensor::empty({600'000}, u8); };
  for (int i = 0; i < 5; ++i) tensor();  // each is gone before the next
  const Tensor one = tensor();
  const std::string error = failure_of([&] { tensor(); });
  EXPECT_THAT(error, HasSubstr("compiling m.onnx exceeds its memory limit"));
  EXPECT_THAT(error, HasSubstr("at most 1048576 bytes (1 MB)"));
  EXPECT_THAT(failure_of([] {
                Array<Any> list;
                for (;;) list = Array<Any>({Any(list)});
              }),
              HasSubstr("exceeds its memory limit"));
}

TEST(WorkBudget, MakingObjectsPolls) {
  std::atomic<bool> stop = true;
  WorkBudget budget({.cancel = &stop}, "compiling", "m.onnx");
  WorkBudget::Scope scope(&budget);
  EXPECT_THAT(failure_of([] {
                Array<Any> list;
                for (;;) list = Array<Any>({Any(list)});
              }),
              HasSubstr("compiling m.onnx was cancelled"));
}

TEST(WorkBudget, StopsOnAllThreadsWhenTheHostSaysSo) {
  static thread_local bool is_asked_here = false;
  is_asked_here = true;
  static bool stops = false;
  stops = false;
  set_host_check([] {
    if (!is_asked_here) return 1;
    if (!stops) return 0;
    set_error(ErrorKind::Runtime, "a signal arrived");
    return -1;
  });
  WorkBudget budget({}, "compiling", "m.onnx");
  const auto failure_elsewhere = [&] {
    std::string failure;
    std::thread([&] { failure = failure_of([&] { budget.poll(); }); }).join();
    return failure;
  };
  EXPECT_EQ(failure_of([&] { budget.poll(); }), "no error");
  stops = true;
  EXPECT_EQ(failure_elsewhere(), "no error");  // that thread isn't the one to ask
  std::string failure = "no error";
  while (failure == "no error") failure = failure_of([&] { budget.poll(); });
  EXPECT_THAT(failure, HasSubstr("a signal arrived"));
  EXPECT_THAT(failure_elsewhere(), HasSubstr("a signal arrived"));
  set_host_check(nullptr);
}

TEST(WorkBudget, DrawsOnTheOneAroundIt) {
  WorkBudget outer({.memory = 1000}, "compiling", "m.onnx");
  WorkBudget::Scope scope(&outer);
  {
    WorkBudget inner({}, "loading", "k.tnx");
    CallContext::Scope within(&inner);
    charge(900);
    EXPECT_EQ(outer.allocated(), 900U);
    EXPECT_THAT(failure_of([] { charge(101); }),
                HasSubstr("compiling m.onnx exceeds its memory limit"));
    charge(100);
  }
  EXPECT_EQ(outer.allocated(), 0U);
  WorkBudget strict({.memory = 10}, "loading", "k.tnx");
  CallContext::Scope within(&strict);
  EXPECT_THAT(failure_of([] { charge(11); }), HasSubstr("loading k.tnx exceeds its memory limit"));
}

}  // namespace
}  // namespace tenon

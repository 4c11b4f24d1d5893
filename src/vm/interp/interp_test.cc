#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "object/registry.h"
#include "object/tensor.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kFib[] = R"(
func @fib(n: i64) -> i64 {
  %1 = lt %0, 2
  if %1, big
  ret %0
big:
  %1 = sub %0, 1
  %2 = sub %0, 2
  %1 = call @fib, %1
  %2 = call @fib, %2
  %0 = add %1, %2
  ret %0
}
func @down(n: i64) -> i64 {
  %1 = gt %0, 0
  if %1, zero
  %1 = sub %0, 1
  %1 = call @down, %1
  %0 = add %1, 1
  ret %0
zero:
  ret %0
}
func @spin() {
again:
  goto again
}
func @count(n: i64) -> i64 {
  %1 = load_int 0
again:
  %2 = lt %1, %0
  if %2, done
  %1 = add %1, 1
  goto again
done:
  ret %1
}
func @loop_by_tail(n: i64) -> i64 {
  if %0, done
  %0 = sub %0, 1
  tail_call @loop_by_tail, %0
done:
  ret 7
}
func @loop_by_moving_tail(n: i64) -> i64 {
  if %0, done
  %1 = sub %0, 1
  tail_call @loop_by_moving_tail, %1
done:
  ret 7
}
func @stale(n: i64) -> bool {
  if %0, done
  %1 = load_const #0
  %0 = sub %0, 1
  tail_call @stale, %0
done:
  %2 = is_none %1
  ret %2
}
const = "a string that is too long for a register"
)";

TEST(Machine, RunsFib) {
  Machine m(program_of(assemble(kFib)));
  EXPECT_EQ(m.call("fib", 20).as<int64_t>(), 6765);
}

TEST(Machine, RunsWhatWasSavedAndLoaded) {
  std::string bytes = write_to_bytes(assemble(kFib));
  EXPECT_EQ(bytes, write_to_bytes(assemble(kFib)));
  Machine m(Program::load_bytes(bytes));
  EXPECT_EQ(m.call("fib", 20).as<int64_t>(), 6765);
}

TEST(Machine, RecursesAMillionDeepWithin256MB) {
  Machine m(program_of(assemble(kFib)));
  EXPECT_EQ(m.call("down", 1'000'000).as<int64_t>(), 1'000'000);
  EXPECT_EQ(m.call("fib", 10).as<int64_t>(), 55);
}

TEST(Machine, TailCallsTakeNoStack) {
  Limits limits;
  limits.depth = 2;
  Machine m(program_of(assemble(kFib)), limits);
  EXPECT_EQ(m.call("loop_by_tail", 1'000'000).as<int64_t>(), 7);
  EXPECT_EQ(m.call("loop_by_moving_tail", 1'000'000).as<int64_t>(), 7);
}

// A tail call whose arguments are in place is a jump; nothing else differs.
TEST(Machine, TailCallsInPlaceAreTailCalls) {
  for (const char* function : {"loop_by_tail", "loop_by_moving_tail"}) {
    Limits limits;
    limits.fuel = 1000;
    Machine m(program_of(assemble(kFib)), limits);
    m.call(function, 10);
    EXPECT_EQ(m.fuel_left(), 1000 - 1 - 10) << function;
    EXPECT_THAT(failure_of([&] { m.call(function, 1000); }), HasSubstr("ran out of fuel"));
    std::vector<int64_t> seen;
    int returns = 0;
    m.set_instrument([&](const CallEvent& event) {
      if (event.before) {
        EXPECT_EQ(event.callee, function);
        seen.push_back(event.args[0].v.i);
      } else {
        ++returns;
      }
      return CallAction::Continue;
    });
    EXPECT_EQ(m.call(function, 3).as<int64_t>(), 7);
    EXPECT_THAT(seen, testing::ElementsAre(2, 1, 0)) << function;
    EXPECT_EQ(returns, 0) << function;  // its end is the end of the host's call
    m.set_instrument([](const CallEvent& event) {
      if (event.before) *event.result = Any(int64_t{100});
      return event.before ? CallAction::Skip : CallAction::Continue;
    });
    EXPECT_EQ(m.call(function, 3).as<int64_t>(), 100) << function;
  }
}

TEST(Machine, TailCallsInPlaceClearTheOtherRegisters) {
  Machine m(program_of(assemble(kFib)));
  EXPECT_TRUE(m.call("stale", 2).as<bool>());
}

TEST(Machine, FuelStopsCallsAndLoopsAndTheMachineAnswersAgain) {
  Limits limits;
  limits.fuel = 1000;
  Machine m(program_of(assemble(kFib)), limits);
  EXPECT_THAT(failure_of([&] { m.call("spin"); }), HasSubstr("ran out of fuel"));
  EXPECT_THAT(failure_of([&] { m.call("fib", 30); }), HasSubstr("ran out of fuel"));
  EXPECT_EQ(m.call("fib", 5).as<int64_t>(), 5);
  EXPECT_EQ(m.call("count", 100).as<int64_t>(), 100);
  EXPECT_EQ(m.fuel_left(), 1000 - 1 - 100);  // the entry, and a backward jump per iteration
}

// A counter, a comparison and a branch, fused into one.
constexpr char kSteps[] = R"(
func @up(n: i64) -> i64 {
  %1 = load_int 0
again:
  %1 = add %1, 1
  %2 = ge %1, %0
  if %2, again
  ret %1
}
func @down_to_zero(n: i64) -> bool {
again:
  %0 = sub %0, 1
  %1 = le %0, 0
  if %1, again
  ret %1
}
func @from(begin: any, end: any) -> i64 {
again:
  %0 = add %0, 3
  %2 = gt %0, %1
  if %2, again
  ret %0
}
func @from_inside(n: i64) -> i64 {
  %1 = load_int 5
  goto inside
again:
  %1 = add %1, 1
inside:
  %2 = ge %1, %0
  if %2, again
  ret %1
}
func @far(n: i64) -> i64 {
again:
  %0 = add %0, 4294967297
  %1 = ge %0, 1
  if %1, again
  ret %0
}
func @least(n: i64) -> i64 {
again:
  %0 = sub %0, -2147483648
  %1 = ge %0, 4294967296
  if %1, again
  ret %0
}
func @own_result(n: i64) -> any {
  %1 = load_int 0
  %1 = add %1, 1
  %1 = lt %1, %0
  if %1, end
  %1 = add %1, 1
end:
  ret %1
}
func @own_bound() -> i64 {
  %0 = load_int 0
again:
  %0 = add %0, 1
  %1 = gt %0, %0
  if %1, again
  ret %0
}
func @result_in_counter(n: i64) -> any {
again:
  %0 = add %0, -1
  %0 = eq %0, 1
  if %0, again
  ret %0
}
func @result_in_bound(n: i64) -> i64 {
  %1 = load_int -4
again:
  %1 = add %1, 1
  %0 = eq %1, %0
  if %0, again
  ret %1
}
func @wraps(n: i64) -> i64 {
again:
  %0 = add %0, 1
  %1 = lt %0, 0
  if %1, again
  ret %0
}
func @unsigned(n: i64) -> i64 {
again:
  %0 = add %0, 1
  %1 = ult %0, 9
  if %1, again
  ret %0
}
)";

TEST(Machine, StepsOfLoopsCountCompareAndBranch) {
  Machine m(program_of(assemble(kSteps)));
  EXPECT_EQ(m.call("up", 100).as<int64_t>(), 100);
  EXPECT_EQ(m.call("up", -5).as<int64_t>(), 1);
  EXPECT_TRUE(m.call("down_to_zero", 3).as<bool>());
  EXPECT_EQ(m.call("from", 1, 9).as<int64_t>(), 10);
  EXPECT_EQ(m.call("from", true, 9).as<int64_t>(), 10);
  EXPECT_EQ(m.call("from_inside", 3).as<int64_t>(), 5);
  EXPECT_EQ(m.call("from_inside", 9).as<int64_t>(), 9);
  EXPECT_EQ(m.call("far", 0).as<int64_t>(), 4294967297);
  EXPECT_EQ(m.call("least", 0).as<int64_t>(), 4294967296);
  EXPECT_EQ(m.call("own_result", 5).as<int64_t>(), 2);
  EXPECT_FALSE(m.call("own_result", 1).as<bool>());
  EXPECT_TRUE(m.call("result_in_counter", 2).as<bool>());
  EXPECT_EQ(m.call("result_in_bound", 5).as<int64_t>(), 0);
  EXPECT_EQ(m.call("wraps", INT64_MAX - 9).as<int64_t>(), INT64_MIN);
  EXPECT_EQ(m.call("unsigned", -7).as<int64_t>(), 0);
}

TEST(Machine, ALoopOfOneStepCanBeStopped) {
  Limits limits;
  limits.fuel = 100000;
  EXPECT_THAT(failure_of([&] { Machine(program_of(assemble(kSteps)), limits).call("own_bound"); }),
              HasSubstr("ran out of fuel"));
  limits.fuel = INT64_MAX;
  limits.deadline = std::chrono::milliseconds(20);
  Machine m(program_of(assemble(kSteps)), limits);
  EXPECT_THAT(failure_of([&] { m.call("up", INT64_MAX); }), HasSubstr("deadline"));
  EXPECT_THAT(failure_of([&] { m.call("own_bound"); }), HasSubstr("deadline"));
  EXPECT_EQ(m.call("up", 100).as<int64_t>(), 100);
}

TEST(Machine, StepsOfLoopsFailWhereTheirInstructionsStand) {
  Limits limits;
  limits.fuel = 1000;
  Machine m(program_of(assemble(kSteps)), limits);
  std::string error = failure_of([&] { m.call("from", "x", 9); });
  EXPECT_THAT(error, HasSubstr("add needs an integer"));
  EXPECT_THAT(error, HasSubstr("from, instruction 0: add"));
  error = failure_of([&] { m.call("from", 1, "x"); });
  EXPECT_THAT(error, HasSubstr("gt needs an integer"));
  EXPECT_THAT(error, HasSubstr("from, instruction 1: gt"));
  error = failure_of([&] { m.call("up", 5000); });
  EXPECT_THAT(error, HasSubstr("ran out of fuel"));
  EXPECT_THAT(error, HasSubstr("up, instruction 3: if"));
  m.call("up", 100);
  EXPECT_EQ(m.fuel_left(), 1000 - 1 - 99);  // the entry, and a backward jump per iteration but one
}

TEST(Machine, DeadlineStopsALoop) {
  Limits limits;
  limits.deadline = std::chrono::milliseconds(20);
  Machine m(program_of(assemble(kFib)), limits);
  EXPECT_THAT(failure_of([&] { m.call("spin"); }), HasSubstr("deadline"));
  EXPECT_EQ(m.call("fib", 5).as<int64_t>(), 5);
}

TEST(Machine, DeadlineStopsALoopInAForkedChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends a child of a fork that starts threads";
#endif
  Limits limits;
  limits.deadline = std::chrono::milliseconds(20);
  Machine m(program_of(assemble(kFib)), limits);
  EXPECT_THAT(failure_of([&] { m.call("spin"); }), HasSubstr("deadline"));
  pid_t child = fork();
  if (child == 0) {
    alarm(30);  // ends the child if the deadline doesn't
    _exit(failure_of([&] { m.call("spin"); }).find("deadline") == std::string::npos);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Machine, OneCancelFromAnotherThreadStopsOneCall) {
  Machine m(program_of(assemble(kFib)));
  EXPECT_FALSE(m.cancel());  // nothing runs, so it has no effect
  EXPECT_EQ(m.call("fib", 5).as<int64_t>(), 5);
  for (int i = 0; i < 500; ++i) {
    std::thread other([&] {
      while (!m.cancel()) {
      }
    });
    EXPECT_THAT(failure_of([&] { m.call("spin"); }), HasSubstr("cancelled"));
    other.join();
    EXPECT_EQ(m.call("fib", 5).as<int64_t>(), 5);
  }
}

TEST(Machine, ACancelBetweenCallsHitsNone) {
  Machine m(program_of(assemble(kFib)));
  std::atomic<bool> stop{false};
  std::atomic<int> hits{0}, ended{0};
  std::thread other([&] {
    while (!stop) {
      int before = ended;
      if (!m.cancel()) continue;
      ++hits;
      while (ended == before && !stop) std::this_thread::yield();
    }
  });
  int stopped = 0;
  for (int i = 0; i < 20'000; ++i) {
    try {
      m.call("fib", 3);
    } catch (const Error&) {
      ++stopped;
    }
    ++ended;
  }
  stop = true;
  other.join();
  EXPECT_LE(stopped, hits);  // a call that was about to end may end normally
}

TEST(Machine, DepthIsLimitedAndTheErrorNamesFrames) {
  Limits limits;
  limits.depth = 100;
  Machine m(program_of(assemble(kFib)), limits);
  EXPECT_EQ(m.call("down", 99).as<int64_t>(), 99);
  std::string error = failure_of([&] { m.call("down", 100); });
  EXPECT_THAT(error, HasSubstr("too deep"));
  EXPECT_THAT(error, HasSubstr("down, instruction 3: call"));
}

TEST(Machine, ABacktraceSaysWhatRepeatsOnce) {
  Machine m(program_of(assemble(R"(
func @main(n: i64) -> i64 {
  %0 = call @even, %0
  ret %0
}
func @even(n: i64) -> i64 {
  if %0, zero
  %0 = sub %0, 1
  %0 = call @odd, %0
  ret %0
zero:
  %0 = call @last, 5
  ret %0
}
func @odd(n: i64) -> i64 {
  %0 = sub %0, 1
  %0 = call @even, %0
  ret %0
}
func @last(n: i64) -> i64 {
  if %0, zero
  %0 = sub %0, 1
  %0 = call @last, %0
  ret %0
zero:
  %0 = floordiv %0, %0
  ret %0
})")));
  try {
    m.call("main", 8);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.backtrace(),
                ElementsAre("last, instruction 4: floordiv", "last, instruction 2: call",
                            "the frame above, repeated 4 times", "even, instruction 4: call",
                            "odd, instruction 1: call", "even, instruction 2: call",
                            "the 2 frames above, repeated 3 times", "main, instruction 0: call"));
  }
  try {
    m.call("main", 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.backtrace(),
                ElementsAre("last, instruction 4: floordiv", "last, instruction 2: call",
                            "the frame above, repeated 4 times", "even, instruction 4: call",
                            "odd, instruction 1: call", "even, instruction 2: call",
                            "main, instruction 0: call"));
  }
}

TEST(Machine, LimitsThatTheSystemRefusesLeaveTheOldOnes) {
  Machine m(program_of(assemble(kFib)));
  Limits huge;
  for (size_t bytes : {size_t{1} << 60, ~size_t{0}, ~size_t{0} - 4096}) {
    huge.stack_bytes = bytes;
    EXPECT_THAT(failure_of([&] { m.set_limits(huge); }), HasSubstr("no address space for a stack"));
    EXPECT_THAT(failure_of([&] { m.set_limits(huge); }), HasSubstr("no address space for a stack"));
    EXPECT_EQ(m.limits().stack_bytes, Limits().stack_bytes);
  }
  // The second of the two reservations fails.
  struct rlimit before, tight;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  Limits deep;
  deep.stack_bytes = size_t{64} << 10;
  deep.depth = 0xffffffff;  // 64 GiB of frames
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  tight = before;
  tight.rlim_cur = pages * 4096 + (size_t{32} << 30);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  std::string error = failure_of([&] { m.set_limits(deep); });
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(error, HasSubstr("no address space for a stack"));
  EXPECT_EQ(m.call("down", 100'000).as<int64_t>(), 100'000);
}

TEST(Machine, MemoryLimitCountsTheStack) {
  Limits limits;
  limits.memory = 1 << 20;
  Machine m(program_of(assemble(kFib)), limits);
  EXPECT_THAT(failure_of([&] { m.call("down", 1'000'000); }), HasSubstr("exceed its memory limit"));
  EXPECT_EQ(m.call("down", 1000).as<int64_t>(), 1000);
}

TEST(Machine, WrongCallsAreUsageErrors) {
  Machine m(program_of(assemble(kFib)));
  EXPECT_THAT(failure_of([&] { m.call("fibb", 1); }), HasSubstr("has no function 'fibb'"));
  EXPECT_THAT(failure_of([&] { m.call("fib"); }), HasSubstr("1 (n: i64)"));
  EXPECT_THAT(failure_of([&] { m.call("fib", "x"); }), HasSubstr("input 'n' does not fit"));
}

}  // namespace
}  // namespace tenon::vm

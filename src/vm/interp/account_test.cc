// Limits and cancellation reach every call: of function values, across programs and machines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

#include "object/module.h"
#include "object/tensor.h"
#include "vm/asm/assemble.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kMakes[] = R"(
func @spin() -> i64 {
again:
  goto again
}
func @deep() -> i64 {
  %0 = call @deep
  %1 = add %0, 1
  ret %1
}
func @hoard() -> i64 {
again:
  %1 = new_tensor cpu:0, u8, 65536
  %0 = alloc_tuple %0!, %1!
  goto again
}
func @seven() -> i64 {
  ret 7
}
func @make_spin() -> any {
  %0 = alloc_closure @spin
  ret %0!
}
func @make_deep() -> any {
  %0 = alloc_closure @deep
  ret %0!
}
func @make_hoard() -> any {
  %0 = alloc_closure @hoard
  ret %0!
}
func @make_maker() -> any {
  %0 = alloc_closure @make_spin
  ret %0!
}
)";
constexpr char kCalls[] = R"(
packed $host.try
packed $host.call
func @call(f: any) -> any {
  %1 = call_closure %0
  ret %1!
}
func @try_then_count(f: any, n: i64) -> i64 {
  _ = call_packed $host.try, %0
again:
  %1 = sub %1, 1
  %2 = gt %1, 0
  if %2, done
  goto again
done:
  ret 1
}
func @host(f: any) -> any {
  %0 = call_packed $host.call, %0
  ret %0!
}
)";

// `failure` is the error that $host.try saw.
struct Two {
  std::string failure = "none";
  Ref<Program> makes = program_of(assemble(kMakes)), calls;
  Two() {
    ProgramOptions options;
    Function attempt =
        Function::from_typed([this](const Function& f) { failure = failure_of([&] { f(); }); });
    Function call = Function::from_typed([](const Function& f) { return f(); });
    options.modules = {Module("test", "host", [=](std::string_view name) {
      return name == "host.try" ? attempt : call;
    })};
    calls = program_of(assemble(kCalls), options);
  }
  Function made(const char* maker, Limits limits = {}) const {
    Machine m(makes, limits);
    return m.call(maker).as<Function>();
  }
};

TEST(Account, AFunctionValueKeepsTheLimitsOfTheMachineThatMadeIt) {
  Two two;
  Function f = two.made("make_spin", {.fuel = 1000});
  EXPECT_THAT(failure_of([&] { f(); }), HasSubstr("at most 1000 function entries"));
  EXPECT_THAT(failure_of([&] { f(); }),
              HasSubstr("ran out of fuel"));                   // each call has the full limit
  f = two.made("make_spin", {.deadline = milliseconds(300)});  // enough to make it, on any machine
  EXPECT_THAT(failure_of([&] { f(); }), HasSubstr("at most 300 ms"));
  f = two.made("make_hoard", {.memory = 1 << 20});
  EXPECT_THAT(failure_of([&] { f(); }), HasSubstr("memory limit"));
  f = two.made("make_deep", {.depth = 100});
  EXPECT_THAT(failure_of([&] { f(); }), HasSubstr("at most 100 frames"));
  // The limit also applies to function values that it makes.
  Function maker = two.made("make_maker", {.fuel = 1000});
  EXPECT_THAT(failure_of([&] { maker().as<Function>()(); }), HasSubstr("ran out of fuel"));
}

TEST(Account, AFunctionIsAValueWithLimitsOfItsOwn) {
  Two two;
  EXPECT_EQ(two.makes->function("seven")().as<int64_t>(), 7);
  Function f = two.makes->function("spin", {.fuel = 1000});
  EXPECT_THAT(failure_of([&] { f(); }), HasSubstr("ran out of fuel"));
  EXPECT_THAT(failure_of([&] { two.makes->function("sevn"); }), HasSubstr("has no function"));
}

TEST(Account, ACallAcrossProgramsRunsOnTheOuterCallsAccount) {
  Two two;
  for (const char* call : {"call", "host"}) {
    Machine m(two.calls, {.fuel = 1000});
    EXPECT_THAT(failure_of([&] { m.call(call, two.made("make_spin")); }),
                HasSubstr("ran out of fuel"));
    m.set_limits({.deadline = milliseconds(20)});
    EXPECT_THAT(failure_of([&] { m.call(call, two.made("make_spin")); }), HasSubstr("deadline"));
    m.set_limits({.memory = 1 << 20});
    EXPECT_THAT(failure_of([&] { m.call(call, two.made("make_hoard")); }),
                HasSubstr("memory limit"));
    m.set_limits({.depth = 100});
    EXPECT_THAT(failure_of([&] { m.call(call, two.made("make_deep")); }),
                HasSubstr("at most 100 frames"));
    m.set_limits({});
    EXPECT_EQ(m.call(call, two.makes->function("seven")).as<int64_t>(), 7);
  }
}

TEST(Account, ABacktraceNamesTheFramesOfBothPrograms) {
  Two two;
  Machine m(two.calls, {.fuel = 1000});
  const std::string error = failure_of([&] { m.call("call", two.made("make_spin")); });
  EXPECT_THAT(error, testing::ContainsRegex("at spin, .*\n.*at call, "));
}

TEST(Account, AFunctionsOwnLimitsHoldWithinACallAndEndWithIt) {
  Two two;
  Machine m(two.calls);
  EXPECT_EQ(m.call("try_then_count", two.made("make_spin", {.fuel = 1000}), 5000).as<int64_t>(), 1);
  EXPECT_THAT(two.failure, HasSubstr("at most 1000 function entries"));
  Function late = two.makes->function("spin", {.deadline = milliseconds(5)});
  EXPECT_EQ(m.call("try_then_count", late, 5000).as<int64_t>(), 1);
  EXPECT_THAT(two.failure, HasSubstr("at most 5 ms"));
  EXPECT_EQ(
      m.call("try_then_count", two.made("make_hoard", {.memory = 1 << 20}), 5000).as<int64_t>(), 1);
  EXPECT_THAT(two.failure, HasSubstr("memory limit"));
  // Their use counts for the outer call.
  m.set_limits({.fuel = 5500});
  EXPECT_THAT(
      failure_of([&] { m.call("try_then_count", two.made("make_spin", {.fuel = 1000}), 5000); }),
      HasSubstr("at most 5500 function entries"));
}

TEST(Account, AnotherMachinesCallWithinACallIsHeldToIt) {
  Two two;
  Machine inner(two.makes);
  auto run = [&](const char* function, Limits limits) {
    Function call = Function::from_typed([&, function] { return inner.call(function); });
    Machine m(two.calls, limits);
    return failure_of([&] { m.call("host", call); });
  };
  EXPECT_THAT(run("spin", {.fuel = 1000}), HasSubstr("ran out of fuel"));
  EXPECT_THAT(run("spin", {.deadline = milliseconds(20)}), HasSubstr("deadline"));
  EXPECT_THAT(run("hoard", {.memory = 4 << 20}), HasSubstr("memory limit"));
  EXPECT_EQ(inner.call("seven").as<int64_t>(), 7);
}

// Cancels until the call has ended; returns the call's error.
template <class Call, class Cancel>
std::string cancelled(Call&& call, Cancel&& cancel) {
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended) {
      cancel();
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  std::string failure = failure_of(call);
  ended = true;
  other.join();
  return failure;
}

TEST(Account, CancellingTheMachineStopsItsFunctionValues) {
  Two two;
  Machine m(two.makes);
  Function f = m.call("make_spin").as<Function>();
  m.set_limits(
      {.fuel = 100});  // of later calls; earlier function values still belong to this machine
  EXPECT_FALSE(m.cancel());
  EXPECT_THAT(cancelled([&] { f(); }, [&] { m.cancel(); }), HasSubstr("was cancelled"));
}

TEST(Account, CancellingReachesCallsWithinTheCall) {
  Two two;
  Machine inner(two.makes), outer(two.calls);
  Function call = Function::from_typed([&] { return inner.call("spin"); });
  EXPECT_THAT(cancelled([&] { outer.call("host", call); }, [&] { outer.cancel(); }),
              HasSubstr("was cancelled"));
  EXPECT_THAT(
      cancelled([&] { outer.call("call", two.made("make_spin")); }, [&] { outer.cancel(); }),
      HasSubstr("was cancelled"));
  EXPECT_EQ(inner.call("seven").as<int64_t>(), 7);
}

TEST(Account, ACallThatBeginsWithinACancelledOneIsCancelledToo) {
  Two two;
  Machine inner(two.makes), outer(two.calls);
  Function call = Function::from_typed([&] {
    EXPECT_TRUE(outer.cancel());
    return inner.call("spin");
  });
  EXPECT_THAT(failure_of([&] { outer.call("host", call); }), HasSubstr("was cancelled"));
}

TEST(Account, AFunctionValueCanBeCancelled) {
  Two two;
  Function f = two.makes->function("spin");
  auto* closure = ClosureObj::of_program(f, nullptr);
  ASSERT_NE(closure, nullptr);
  EXPECT_FALSE(closure->cancel());
  EXPECT_THAT(cancelled([&] { f(); }, [&] { closure->cancel(); }), HasSubstr("was cancelled"));
}

TEST(Account, TwoAreCombinedUnlessOneIncludesTheOther) {
  const auto x = make<RunningCalls>(), y = make<RunningCalls>();
  const Limits fuel = {.fuel = 10}, memory = {.fuel = 20, .memory = 100};
  const auto a = Account::of(fuel, x), b = Account::of(memory, y);
  const auto both = Account::combined(*a, *b);
  EXPECT_EQ(both->limits, (Limits{.fuel = 10, .memory = 100}));
  EXPECT_THAT(both->calls, testing::ElementsAre(y, x));
  EXPECT_EQ(Account::combined(*a, *both), both);
  EXPECT_EQ(Account::combined(*both, *a), both);
  EXPECT_EQ(Account::combined(*a, *a), a);
  EXPECT_TRUE(both->includes(*b));
  EXPECT_FALSE(a->includes(*b));
  // The same limits, but cancelled by others; cancelled by the same, but other limits.
  EXPECT_FALSE(a->includes(*Account::of(fuel, y)));
  EXPECT_FALSE(Account::of(memory, x)->includes(*a));
}

TEST(Nesting, EndsWhereTheNativeStackDoes) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer needs larger stacks";
#endif
  ProgramOptions options;
  Function again = Function::from_typed([](const Function& f, int64_t n) { return f(f, n); });
  options.modules = {Module("test", "host", [=](std::string_view) { return again; })};
  Ref<Program> program = program_of(assemble(R"(
    packed $host.again
    func @nest(f: any, n: i64) -> i64 {
      if %1, bottom
      %1 = sub %1, 1
      %1 = call_packed $host.again, %0, %1
      ret %1
    bottom:
      ret 0
    })"),
                                    options);
  Function nest = program->function("nest");
  EXPECT_EQ(nest(nest, 150).as<int64_t>(), 0);
  struct Thread {
    Function nest;
    std::string failure;
  };
  auto failure_on_stack = [&](size_t bytes) {
    Thread thread{nest, ""};
    pthread_attr_t attributes;
    EXPECT_EQ(pthread_attr_init(&attributes), 0);
    // Its own memory: the C library may reuse an old thread's stack, which may be larger.
    std::unique_ptr<void, void (*)(void*)> stack(std::aligned_alloc(4096, bytes), std::free);
    EXPECT_EQ(pthread_attr_setstack(&attributes, stack.get(), bytes), 0);
    pthread_t id;
    auto run = [](void* p) -> void* {
      auto* t = static_cast<Thread*>(p);
      t->failure = failure_of([&] { t->nest(t->nest, 190); });
      return nullptr;
    };
    EXPECT_EQ(pthread_create(&id, &attributes, run, &thread), 0);
    pthread_join(id, nullptr);
    pthread_attr_destroy(&attributes);
    return thread.failure;
  };
  EXPECT_THAT(failure_on_stack(256 << 10),
              AllOf(HasSubstr("the thread's native stack is too small for the call"),
                    Not(HasSubstr("within 0 calls"))));
  // Also the first call: it may run a kernel.
  EXPECT_THAT(failure_on_stack(80 << 10),
              AllOf(HasSubstr("left, within 0 calls"), HasSubstr("expected  98304 bytes (96 KB)"),
                    HasSubstr("give the thread a larger stack")));
}

}  // namespace
}  // namespace tenon::vm

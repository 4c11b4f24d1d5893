// Groups of calls on several threads. test/golden/vm/data/concurrent.tna has those on one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "device/device.h"
#include "device/host_check.h"
#include "device/parallel.h"
#include "object/array.h"
#include "object/registry.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr MachineOptions kTwo = {.inter_op = 2};
// The calls would wait forever, if they weren't stopped.
constexpr Limits kLimits = {.deadline = std::chrono::seconds(60), .threads = 2};

constexpr char kProgram[] = R"(
packed $host.a
packed $host.b
func @both(x: any) -> i64 {
  concurrent 2
  _ = call_packed $host.a, %0
  _ = call_packed $host.b, %0
  ret 7
}
func @many(x: any) -> i64 {
  concurrent 5
  _ = call_packed $host.a, 0
  _ = call_packed $host.a, 1
  _ = call_packed $host.a, 2
  _ = call_packed $host.a, 3
  _ = call_packed $host.b, 4
  ret 7
}
func @last(x: any) -> bool {
  concurrent 2
  _ = call_packed $host.a, %0
  _ = call_packed $host.b, %0!
  %0 = is_none %0
  ret %0
}
func @times(n: i64) -> i64 {
  %1 = load_int 0
again:
  concurrent 2
  _ = call_packed $host.a, %1
  _ = call_packed $host.b, %1
  %1 = add %1, 1
  %2 = lt %1, %0
  if %2, done
  goto again
done:
  ret %1
}
)";

template <class A, class B>
Ref<Program> with(A&& a, B&& b, ProgramOptions options = {}) {
  const Function first = Function::from_typed(std::forward<A>(a));
  const Function second = Function::from_typed(std::forward<B>(b));
  options.modules = {Module("test", "host", [=](std::string_view name) {
    return name == "host.a" ? first : name == "host.b" ? second : Function();
  })};
  return program_of(assemble(kProgram), std::move(options));
}

void wait_for(const std::atomic<bool>& event) {
  while (!event) poll();
}

TEST(Concurrent, CallsRunAtTheSameTimeEachOnOneThread) {
  std::atomic<bool> a_runs{false}, b_runs{false};
  std::thread::id a_thread, b_thread;
  const auto member = [](std::atomic<bool>& mine, const std::atomic<bool>& other,
                         std::thread::id& id) {
    id = std::this_thread::get_id();
    mine = true;
    wait_for(other);
    EXPECT_EQ(threads_in_scope(), 1);
    parallel_for(4, 1, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), id); });
  };
  Machine m(with([&](const Any&) { member(a_runs, b_runs, a_thread); },
                 [&](const Any&) { member(b_runs, a_runs, b_thread); }),
            kLimits, kTwo);
  EXPECT_EQ(m.call("both", 1).as<int64_t>(), 7);
  EXPECT_NE(a_thread, b_thread);
}

TEST(Concurrent, CallsReleaseRegistersAtTheirLastUses) {
  Machine m(with([](const Any&) {}, [](const Any&) {}), kLimits, kTwo);
  EXPECT_TRUE(m.call("last", 1).as<bool>());
}

// The calls of `both` run in order on this thread.
struct InOrder : testing::Test {
  std::vector<int> seen;
  ProgramOptions options;

  Ref<Program> program() {
    const auto member = [this](int which) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      seen.push_back(which);
    };
    return with([=](const Any&) { member(1); }, [=](const Any&) { member(2); }, options);
  }
  void TearDown() override { EXPECT_THAT(seen, ElementsAre(1, 2)); }

  const std::thread::id here = std::this_thread::get_id();
};

TEST_F(InOrder, ByDefault) {
  Machine m(program(), kLimits);
  m.call("both", 1);
}

TEST_F(InOrder, IfTheLimitsAllowOneThread) {
  Machine m(program(), {.threads = 1}, kTwo);
  m.call("both", 1);
}

TEST_F(InOrder, UnderAnInstrument) {
  Machine m(program(), kLimits, kTwo);
  std::vector<std::string> events;
  m.set_instrument([&](const CallEvent& e) {
    events.push_back(cat(e.before ? "before " : "after ", e.callee));
    return CallAction::Continue;
  });
  m.call("both", 1);
  EXPECT_THAT(events,
              ElementsAre("before host.a", "after host.a", "before host.b", "after host.b"));
}

TEST_F(InOrder, IfTheProgramIsNotTrusted) {
  for (const int which : {1, 2}) {
    register_typed(cat("test.member_", which),
                   [=, this](const Any&) {
                     EXPECT_EQ(std::this_thread::get_id(), here);
                     seen.push_back(which);
                   },
                   {.for_files = true});
  }
  options.trusted = false;
  Machine m(program_of(assemble(R"(
packed $test.member_1
packed $test.member_2
func @both(x: any) {
  concurrent 2
  _ = call_packed $test.member_1, %0
  _ = call_packed $test.member_2, %0
  ret _
}
)"),
                       options),
            kLimits, kTwo);
  m.call("both", 1);
  unregister_function("test.member_1");
  unregister_function("test.member_2");
}

TEST_F(InOrder, WithinAParallelLoop) {
  Machine m(program(), kLimits, kTwo);
  parallel_for(
      1, 1, [&](int64_t, int64_t) { m.call("both", 1); }, /*each_chunk=*/true);
}

TEST(Concurrent, TheLowestCallsErrorWins) {
  std::atomic<bool> b_failed{false};
  const auto a = [&](int64_t i) {
    if (i < 2) return;
    if (i == 2) wait_for(b_failed);
    throw Error(ErrorKind::Runtime, cat("call ", i, " refuses"));
  };
  const auto b = [&](int64_t) {
    b_failed = true;
    throw Error(ErrorKind::Runtime, "the last call refuses");
  };
  const Ref<Program> program = with(a, b);
  Machine m(program, kLimits, kTwo);
  const std::string failure = failure_of([&] { m.call("many", 0); });
  EXPECT_THAT(failure, HasSubstr("call 2 refuses"));
  EXPECT_THAT(failure, HasSubstr("packed function host.a"));
  EXPECT_THAT(failure, HasSubstr("instruction 3: call_packed"));
  Machine in_order(program, kLimits);
  EXPECT_EQ(failure_of([&] { in_order.call("many", 0); }), failure);
  // The machine is as usable as before.
  EXPECT_EQ(failure_of([&] { m.call("many", 0); }), failure);
}

TEST(Concurrent, AMissingFunctionIsAnErrorOfItsCall) {
  ProgramOptions look;
  look.allow_missing = true;
  const Ref<Program> program = program_of(assemble(kProgram), look);
  Machine m(program, kLimits, kTwo), in_order(program, kLimits);
  const std::string failure = failure_of([&] { m.call("both", 1); });
  EXPECT_THAT(failure, HasSubstr("'host.a' is linked"));
  EXPECT_EQ(failure_of([&] { in_order.call("both", 1); }), failure);
}

// Two calls that run until they are stopped.
struct Endless : testing::Test {
  std::atomic<int> running{0};
  bool ends = false;

  Ref<Program> program() {
    const auto member = [this](const Any&) {
      if (ends) return;
      ++running;
      for (;;) poll();
    };
    return with(member, member);
  }
  void expect_usable(Machine& m) {
    ends = true;
    EXPECT_EQ(m.call("both", 1).as<int64_t>(), 7);
  }
};

TEST_F(Endless, CallsAreCancelled) {
  Machine m(program(), kLimits, kTwo);
  std::thread other([&] {
    while (running < 2) std::this_thread::yield();
    m.cancel();
  });
  EXPECT_THAT(failure_of([&] { m.call("both", 1); }), HasSubstr("the call was cancelled"));
  other.join();
  expect_usable(m);
}

TEST_F(Endless, CallsEndAtTheDeadline) {
  Machine m(program(), {.deadline = std::chrono::milliseconds(100), .threads = 2}, kTwo);
  EXPECT_THAT(failure_of([&] { m.call("both", 1); }), HasSubstr("ran past its deadline"));
  expect_usable(m);
}

TEST_F(Endless, CallsAreStoppedByTheHost) {
  static thread_local bool is_asked_here = false;
  static std::atomic<int>* runs = nullptr;
  is_asked_here = true;
  runs = &running;
  set_host_check([] {
    if (!is_asked_here) return 1;
    if (*runs < 2) return 0;
    set_error(ErrorKind::Runtime, "a signal arrived");
    return -1;
  });
  Machine m(program(), kLimits, kTwo);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    // Not before both run: a machine that is asked something runs groups in order.
    while (running < 2) std::this_thread::yield();
    while (!stop) m.request_check();
  });
  EXPECT_THAT(failure_of([&] { m.call("both", 1); }), HasSubstr("a signal arrived"));
  stop = true;
  other.join();
  set_host_check(nullptr);
  expect_usable(m);
}

TEST(Concurrent, CallsTakeTheSameFuel) {
  const Ref<Program> program = with([](int64_t) {}, [](int64_t) {});
  Machine m(program, {.fuel = 1000, .threads = 2}, kTwo), in_order(program, {.fuel = 1000});
  EXPECT_EQ(m.call("times", 500).as<int64_t>(), 500);
  in_order.call("times", 500);
  EXPECT_EQ(m.fuel_left(), in_order.fuel_left());
  EXPECT_THAT(failure_of([&] { m.call("times", 2000); }), HasSubstr("ran out of fuel"));
}

TEST(Concurrent, CallsMayCallFunctionsOfTheProgram) {
  Function times;
  std::atomic<int64_t> sum{0};
  const auto member = [&](const Any&) { sum += times(int64_t{100}).as<int64_t>(); };
  const Ref<Program> program = with(member, member);
  const Ref<Program> counts = with([](int64_t) {}, [](int64_t) {});
  times = counts->function("times");
  Machine m(program, kLimits, kTwo);
  EXPECT_EQ(m.call("both", 1).as<int64_t>(), 7);
  EXPECT_EQ(sum, 200);
}

TEST(Concurrent, MemoryOfCallsCounts) {
  constexpr int64_t kShape[] = {1000};
  std::atomic<int> allocated{0};
  const auto member = [&](const Any&) {
    const Tensor t = allocate_tensor(kShape, f32);
    t.data_as<float>()[999] = 1;
    ++allocated;
  };
  Machine m(with(member, member), {.memory = 1 << 20, .threads = 2}, kTwo);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(m.call("both", 1).as<int64_t>(), 7);
  EXPECT_EQ(allocated, 40);
}

// ---- kernels ----

constexpr char kKernels[] = R"(
kernel $doubled
kernel $workspace
func @main(x: any, turns: i64) -> any {
  match_tensor %0, f32, ->%2
  %3 = new_tensor cpu:0, f32, %2
  %4 = new_tensor cpu:0, f32, %2
  %5 = new_tensor cpu:0, f32, %2
  %6 = new_tensor cpu:0, f32, %2
  concurrent 2
  _ = call_packed $doubled, %0, %3
  _ = call_packed $doubled, %0!, %4
again:
  concurrent 2
  _ = call_packed $doubled, %3, %5
  _ = call_packed $doubled, %4, %6
  concurrent 2
  _ = call_packed $doubled, %5, %4
  _ = call_packed $doubled, %6, %3
  %1 = sub %1, 1
  if %1, done
  goto again
done:
  %0 = alloc_tuple %3, %4, %5, %6
  ret %0
}
func @wrong(x: any) -> any {
  %1 = new_tensor cpu:0, f32, 3
  %2 = new_tensor cpu:0, f32, 4
  concurrent 2
  _ = call_packed $doubled, %0, %1
  _ = call_packed $doubled, %0, %2
  ret %2!
}
func @workspaces(n: i64) {
  concurrent 2
  _ = call_packed $workspace, %0
  _ = call_packed $workspace, %0
  ret _
}
)";

Ref<Program> kernels() {
  return Program::load_bytes(write_to_bytes(with_kernels(kKernels, TENON_TEST_KERNELS)));
}

Tensor some_numbers() {
  static std::vector<float> data(3000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i) / 7;
  const int64_t shape[] = {static_cast<int64_t>(data.size())};
  return Tensor::copy_of<float>(shape, f32, data);
}

TEST(Concurrent, KernelsComputeTheSame) {
  const Ref<Program> program = kernels();
  Machine m(program, kLimits, {.inter_op = 4}), in_order(program, kLimits);
  const Tensor x = some_numbers();
  const auto expected = in_order.call("main", x, 10).as<Array<Tensor>>();
  const auto found = m.call("main", x, 10).as<Array<Tensor>>();
  ASSERT_EQ(found.size(), 4u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(
        std::memcmp(found[i].data(), expected[i].data(), static_cast<size_t>(found[i].bytes())), 0)
        << i;
  }
}

TEST(Concurrent, KernelsFailTheSame) {
  const Ref<Program> program = kernels();
  Machine m(program, kLimits, kTwo), in_order(program, kLimits);
  const std::string failure = failure_of([&] { m.call("wrong", some_numbers()); });
  EXPECT_THAT(failure, HasSubstr("kernel 'doubled'"));
  EXPECT_EQ(failure_of([&] { in_order.call("wrong", some_numbers()); }), failure);
}

TEST(Concurrent, WorkspaceCounts) {
  Machine m(kernels(), {.memory = 1 << 20, .threads = 2}, kTwo);
  for (int i = 0; i < 100; ++i) m.call("workspaces", 1000);
  EXPECT_THAT(failure_of([&] { m.call("workspaces", 10 << 20); }), HasSubstr("workspace"));
  m.call("workspaces", 1000);
}

}  // namespace
}  // namespace tenon::vm

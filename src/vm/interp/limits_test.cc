// Each limit, and cancellation, holds in a call whoever makes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "device/host_check.h"
#include "device/parallel.h"
#include "object/module.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

using std::chrono::milliseconds;
constexpr auto kLong = std::chrono::seconds(10);  // so that a failing test ends
using testing::HasSubstr;

constexpr char kProgram[] = R"(
packed $host.started
packed $host.threads
packed $host.call
func @spin() -> i64 {
  _ = call_packed $host.started
again:
  goto again
}
func @deep() -> i64 {
  %0 = call @deep
  %1 = add %0, 1
  ret %1
}
func @hoard_tensors() -> i64 {
again:
  %1 = new_tensor cpu:0, u8, 65536
  %0 = alloc_tuple %0!, %1!
  goto again
}
func @hoard_objects() -> i64 {
again:
  %0 = alloc_tuple %0!, 1
  goto again
}
func @threads() -> i64 {
  %0 = call_packed $host.threads
  ret %0
}
func @make_spin() -> any {
  %0 = alloc_closure @spin
  ret %0!
}
func @megabyte() -> any {
  %0 = new_tensor cpu:0, u8, 1048576
  ret %0!
}
func @open_recursion(f: any, n: i64) -> i64 {
  if %1, bottom
  %1 = sub %1, 1
  %1 = call_closure %0, %0, %1
  %1 = add %1, 1
bottom:
  ret %1
}
func @call(f: any) -> any {
  %0 = call_closure %0
  ret %0!
}
func @tail_call(f: any) -> any {
  tail_call_closure %0!
}
func @call_in_host(f: any) -> any {
  %0 = call_packed $host.call, %0
  ret %0!
}
func @seven() -> i64 {
  ret 7
}
)";

std::atomic<bool> started;  // by `spin`

Ref<Program> new_program() {
  Function start = Function::from_typed([] { started = true; });
  Function threads = Function::from_typed([] { return int64_t{threads_in_scope()}; });
  Function call = Function::from_typed([](const Function& f) { return f(); });
  ProgramOptions options;
  options.modules = {Module("test", "host", [=](std::string_view name) {
    return name == "host.started" ? start : name == "host.threads" ? threads : call;
  })};
  return program_of(assemble(kProgram), options);
}

// Runs a function under limits in some way. Whatever is around it has no limit but kLong.
struct Caller {
  std::string name;
  std::function<Any(const Ref<Program>&, const char* function, const Limits&)> call;
  std::function<bool()> cancel;  // of the call that has the limits
};

// A function value is called by a function of a machine.
Caller by_machine(std::string name, const char* caller, bool same_program) {
  auto f = std::make_shared<Function>();
  return {std::move(name),
          [=](const Ref<Program>& program, const char* function, const Limits& limits) {
            *f = program->function(function, limits);
            Machine m(same_program ? program : new_program(), {.deadline = kLong});
            return m.call(caller, *f);
          },
          [=] { return ClosureObj::of_program(*f, nullptr)->cancel(); }};
}

// A machine with the limits is called by a packed function of another one without.
// `within(outer, inner, function)` is what that packed function does.
Caller by_inner_machine(std::string name,
                        std::function<Any(Machine&, Machine&, const char*)> within) {
  struct Machines {
    std::unique_ptr<Machine> outer, inner;
  };
  auto m = std::make_shared<Machines>();
  return {std::move(name),
          [=](const Ref<Program>& program, const char* function, const Limits& limits) {
            m->outer = std::make_unique<Machine>(program, Limits{.deadline = kLong});
            m->inner = std::make_unique<Machine>(program, limits);
            return m->outer->call("call_in_host", Function::from_typed([=] {
                                    return within(*m->outer, *m->inner, function);
                                  }));
          },
          [=] { return m->inner->cancel(); }};
}

std::vector<Caller> callers() {
  auto f = std::make_shared<Function>();
  return {
      {"the host",
       [=](const Ref<Program>& program, const char* function, const Limits& limits) {
         *f = program->function(function, limits);
         return (*f)();
       },
       [=] { return ClosureObj::of_program(*f, nullptr)->cancel(); }},
      by_machine("a machine of the program", "call", true),
      by_machine("a machine of the program, as a tail call", "tail_call", true),
      by_machine("a packed function within a machine of the program", "call_in_host", true),
      by_machine("a machine of another program", "call", false),
      by_machine("a machine of another program, as a tail call", "tail_call", false),
      by_machine("a packed function within a machine of another program", "call_in_host", false),
      by_inner_machine(
          "a packed function within another machine",
          [](Machine&, Machine& inner, const char* function) { return inner.call(function); }),
      by_inner_machine("a machine that calls the one around it",
                       [](Machine& outer, Machine& inner, const char* function) {
                         return inner.call("call_in_host", Function::from_typed([&, function] {
                                             return outer.call(function);
                                           }));
                       }),
      by_inner_machine("a machine that calls a function of the one around it",
                       [](Machine& outer, Machine& inner, const char* function) {
                         Function f = outer.running_program().function(function);
                         return inner.call("call_in_host", Function::from_typed([&] {
                                             return outer.call("call", f);
                                           }));
                       }),
  };
}

TEST(Limits, HoldWhoeverCalls) {
  struct Case {
    const char* function;
    Limits limits;
    const char* failure;
  };
  const Case cases[] = {
      {"spin", {.fuel = 1000}, "at most 1000 function entries"},
      {"spin", {.deadline = milliseconds(20)}, "at most 20 ms"},
      {"hoard_tensors", {.memory = 1 << 20}, "exceed its memory limit"},
      {"hoard_objects", {.memory = 1 << 20}, "exceed its memory limit"},
      {"deep", {.memory = 1 << 20}, "exceed its memory limit"},
      {"deep", {.depth = 100}, "at most 100 frames"},
      {"deep", {.stack_bytes = 100'000}, "at most 100000 bytes (97.7 KB) of registers"},
  };
  const Ref<Program> program = new_program();
  for (const Caller& caller : callers()) {
    for (const Case& c : cases) {
      EXPECT_THAT(failure_of([&] { caller.call(program, c.function, c.limits); }),
                  HasSubstr(c.failure))
          << c.function << " called by " << caller.name;
    }
    EXPECT_EQ(caller.call(program, "threads", {.threads = 77}).as<int64_t>(), 77) << caller.name;
    EXPECT_EQ(caller.call(program, "seven", {.fuel = 1000}).as<int64_t>(), 7) << caller.name;
  }
}

// Calls `spin` and cancels it once it runs; returns the call's error.
std::string failure_when_cancelled(const std::function<void()>& spin,
                                   const std::function<bool()>& cancel) {
  started = false;
  std::thread other([&] {
    while (!started) std::this_thread::yield();
    EXPECT_TRUE(cancel());
  });
  std::string failure = failure_of(spin);
  started = true;
  other.join();
  return failure;
}

TEST(Cancellation, StopsACallWhoeverMakesIt) {
  const Ref<Program> program = new_program();
  for (const Caller& caller : callers()) {
    EXPECT_THAT(failure_when_cancelled([&] { caller.call(program, "spin", {.deadline = kLong}); },
                                       caller.cancel),
                HasSubstr("the call was cancelled"))
        << caller.name;
  }
}

TEST(Cancellation, EndsWithTheCallThatWasCancelled) {
  const Ref<Program> program = new_program();
  Machine m(program);
  Function f = program->function("spin", {.deadline = kLong});
  auto cancel = [&] { return ClosureObj::of_program(f, nullptr)->cancel(); };
  std::string failure;
  Function attempt = Function::from_typed([&] {
    failure = failure_when_cancelled([&] { f(); }, cancel);
    return Machine::current()->call("seven");  // the same machine: not cancelled
  });
  EXPECT_EQ(m.call("call_in_host", attempt).as<int64_t>(), 7);
  EXPECT_THAT(failure, HasSubstr("was cancelled"));
  // Cancelled while a call within it runs, which doesn't hide that.
  Function within = Function::from_typed([&] {
    EXPECT_TRUE(cancel());
    EXPECT_THAT(failure_of([&] { program->function("seven", {.fuel = 10})(); }),
                HasSubstr("was cancelled"));
    return Machine::current()->call("seven");
  });
  f = program->function("call_in_host");
  Function outer = Function::from_typed([&] {
    failure = failure_of([&] { f(within); });
    return Machine::current()->call("seven");
  });
  EXPECT_EQ(m.call("call_in_host", outer).as<int64_t>(), 7);
  EXPECT_THAT(failure, HasSubstr("was cancelled"));
}

TEST(Cancellation, OfEachMakerStopsAClosure) {
  const Ref<Program> program = new_program();
  for (const bool same : {true, false}) {
    Machine m(same ? program : new_program());
    Function make = program->function("make_spin", {.fuel = 1'000'000'000'000});
    Function made = m.call("call", make).as<Function>();
    m.set_limits({.deadline = kLong});
    auto call = [&] { m.call("call", made); };
    auto host = [&] { made(); };
    auto cancel_machine = [&] { return m.cancel(); };
    auto cancel_function = [&] { return ClosureObj::of_program(make, nullptr)->cancel(); };
    EXPECT_THAT(failure_when_cancelled(host, cancel_machine), HasSubstr("was cancelled"));
    EXPECT_THAT(failure_when_cancelled(host, cancel_function), HasSubstr("was cancelled"));
    EXPECT_THAT(failure_when_cancelled(call, cancel_machine), HasSubstr("was cancelled"));
    EXPECT_THAT(failure_when_cancelled(call, cancel_function), HasSubstr("was cancelled"));
  }
}

TEST(Limits, OfAClosureAreThoseOfAllItsMakers) {
  const Ref<Program> program = new_program();
  Machine m(program, {.fuel = 10'000, .deadline = kLong});
  Function by_function =
      m.call("call", program->function("make_spin", {.fuel = 1000})).as<Function>();
  Function by_machine =
      m.call("call", program->function("make_spin", {.fuel = 1'000'000})).as<Function>();
  EXPECT_THAT(failure_of([&] { by_function(); }), HasSubstr("at most 1000 function"));
  EXPECT_THAT(failure_of([&] { by_machine(); }), HasSubstr("at most 10000 function"));
  // Also of the machines around.
  Machine inner(program);
  Function make = Function::from_typed([&] { return inner.call("make_spin"); });
  Function by_outer = m.call("call_in_host", make).as<Function>();
  EXPECT_THAT(failure_of([&] { by_outer(); }), HasSubstr("at most 10000 function"));
}

// What holds arrays of functions is copied, once for each of its paths.
TEST(Limits, OfAFunctionHoldWhileItIsBound) {
  constexpr int kLevels = 40;
  std::string type = "fn(i64) -> i64", levels;
  for (int i = 0; i < kLevels; ++i) {
    type = cat("array[", type, "]");
    levels += "  %0 = alloc_tuple %0, %0\n";
  }
  const Ref<Program> program = program_of(
      assemble(cat("func @f(x: i64) -> i64 {\n  ret %0\n}\nfunc @use(a: ", type,
                   ") -> i64 {\n  ret 5\n}\nfunc @make() -> any {\n  %0 = alloc_closure @f\n",
                   levels, "  ret %0\n}\n")));
  const Any made = Machine(program).call("make");
  const auto bind = [&](const Limits& limits) {
    const AnyView argument = made;
    return failure_of([&] {
      ClosureObj::of_program(Any(program->function("use", limits)), nullptr)->bound({&argument, 1});
    });
  };
  EXPECT_THAT(bind({.memory = 1 << 20}), HasSubstr("binding <memory> exceeds its memory limit"));
  EXPECT_THAT(bind({.deadline = milliseconds(20)}), HasSubstr("binding <memory> ran past"));
}

TEST(Limits, OfACallAreWhatTheOneAroundItLeaves) {
  const Ref<Program> program = new_program();
  Machine inner(program);
  auto run = [&](const char* function, const Limits& limits) {
    Machine m(program, limits);
    return failure_of([&] {
      m.call("call_in_host", Function::from_typed([&, function] { return inner.call(function); }));
    });
  };
  EXPECT_THAT(run("spin", {.fuel = 1000}), HasSubstr("at most 1000 function entries"));
  EXPECT_THAT(run("spin", {.deadline = milliseconds(20)}), HasSubstr("at most 20 ms"));
  EXPECT_THAT(run("hoard_tensors", {.memory = 1 << 20}), HasSubstr("exceed its memory limit"));
  EXPECT_THAT(run("deep", {.depth = 100}), HasSubstr("at most 100 frames"));
  EXPECT_THAT(run("deep", {.stack_bytes = 100'000}), HasSubstr("at most 100000 bytes"));
  Machine few(program, {.threads = 77});
  for (const auto& [own, used] : {std::pair(0, 77), std::pair(100, 77), std::pair(5, 5)}) {
    inner.set_limits({.threads = own});
    Function call = Function::from_typed([&] { return inner.call("threads"); });
    EXPECT_EQ(few.call("call_in_host", call).as<int64_t>(), used);
    EXPECT_EQ(few.call("call", program->function("threads", {.threads = own})).as<int64_t>(), used);
  }
}

TEST(Limits, AreChargedForWhatTheirMachineDoesWithinAnotherMachinesCall) {
  const Ref<Program> program = new_program();
  Machine outer(program, {.fuel = 10'000, .memory = 4 << 20}), inner(program, {.fuel = 5000});
  std::vector<Any> kept;
  auto call = [&](const char* function, int times) {
    Function within = Function::from_typed([&, function, times] {
      for (int i = 0; i < times; ++i) kept.push_back(outer.call(function));
    });
    return [&, within] {
      outer.call("call_in_host",
                 Function::from_typed([&, within] { inner.call("call_in_host", within); }));
    };
  };
  call("seven", 100)();
  EXPECT_EQ(outer.fuel_left(), 10'000 - 102);
  EXPECT_THAT(failure_of(call("megabyte", 5)), HasSubstr("exceed its memory limit"));
  kept.clear();
  call("megabyte", 3)();
}

// However deep: a function value nests on the native stack only where it adds a limit.
TEST(Limits, OfAFunctionValueThatCallsItselfAreSetOnce) {
  const Ref<Program> program = new_program();
  Machine m(program);
  Function f = program->function("open_recursion", {.fuel = 1'000'000});
  EXPECT_EQ(m.call("open_recursion", f, 5000).as<int64_t>(), 5000);
}

TEST(HostCheck, AStoppedCallStopsTheThreadsThatHelpWithIt) {
  static thread_local bool is_asked_here = false;
  static std::atomic<bool> has_help{false};
  is_asked_here = true;
  set_host_check([] {
    if (!is_asked_here) return 1;
    if (!has_help) return 0;
    set_error(ErrorKind::Runtime, "a signal arrived");
    return -1;
  });
  Machine m(new_program(), {.deadline = kLong, .threads = 2});
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) m.request_check();
  });
  const Function loop = Function::from_typed([&] {
    parallel_for(2, 1, [&](int64_t, int64_t) {
      if (!is_asked_here) has_help = true;
      for (;;) poll();
    });
  });
  EXPECT_THAT(failure_of([&] { m.call("call_in_host", loop); }), HasSubstr("a signal arrived"));
  stop = true;
  other.join();
  set_host_check(nullptr);
  EXPECT_EQ(failure_of([&] { m.call("call_in_host", Function::from_typed([] { poll(); })); }),
            "no error");
}

}  // namespace
}  // namespace tenon::vm

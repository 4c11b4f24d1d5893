// Machines through the C interface: memory, instruments, calls by value and into outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <thread>

#include "c_api/entry.h"
#include "object/array.h"
#include "object/map.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kProgram[] = R"(
packed $test.twice
packed $test.meet
func @main(n: i64) -> tensor[n; f32] {
  %0 = alloc_result 0, cpu:0, f32, %0
  ret %0!
}
func @work(n: i64) -> i64 {
  %0 = call @increment, %0
  %0 = call_packed $test.twice, %0
  ret %0
}
func @increment(n: i64) -> i64 {
  %0 = add %0, 1
  ret %0
}
func @subtract(a: i64, b: i64) -> i64 {
  %0 = sub %0, %1
  ret %0
}
func @jump(n: i64) -> i64 {
  tail_call @increment, %0
}
func @jumps(n: i64) -> i64 {
  %0 = call @jump, %0
  ret %0
}
func @closure(n: i64) -> any {
  %0 = alloc_closure @increment
  ret %0!
}
func @through(n: i64) -> i64 {
  %1 = alloc_closure @increment
  %0 = call_closure %1!, %0
  ret %0
}
func @same_text(s: string) -> string {
  ret %0
}
func @constant() -> tensor[2; f32] {
  ret #0
}
func @meeting(n: i64) -> i64 {
  concurrent 2
  _ = call_packed $test.meet
  _ = call_packed $test.meet
  ret %0
}
const = tensor[2; f32] hex "0000803f00000040"
)";

struct Out {
  tenon_any value = TENON_NONE_VALUE;
  ~Out() { tenon_any_release(&value); }
  operator tenon_any*() { return &value; }
  const AnyView& view() const { return c_api::view(&value); }
  int64_t integer() const { return view().as<int64_t>(); }
};

tenon_any integer(int64_t i) {
  tenon_any a = TENON_NONE_VALUE;
  a.type_index = TENON_INT;
  a.v.i = i;
  return a;
}

using See = std::function<int(const tenon_call_event&)>;

int call_see(void* context, const tenon_call_event* event) {
  return (*static_cast<See*>(context))(*event);
}

std::string failed(int code) {
  return code == 0 ? "no error" : tenon_last_error();
}

struct CMachine : testing::Test {
  Out program, machine, result;

  void SetUp() override {
    const std::string bytes = vm::write_to_bytes(vm::assemble(kProgram));
    Out twice, meet, names[2], functions, module;
    const auto call = [](void*, const tenon_any* args, int32_t, tenon_any* out) {
      *out = integer(2 * args[0].v.i);
      return 0;
    };
    ASSERT_EQ(tenon_function_create(call, nullptr, nullptr, twice), 0);
    static std::atomic<int> guests;
    guests = 0;
    // Returns once there is another call.
    const auto wait = [](void*, const tenon_any*, int32_t, tenon_any*) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      for (++guests; guests < 2;) {
        if (std::chrono::steady_clock::now() < end) continue;
        tenon_error_set(TENON_ERROR_RUNTIME, "nobody came");
        return -1;
      }
      return 0;
    };
    ASSERT_EQ(tenon_function_create(wait, nullptr, nullptr, meet), 0);
    ASSERT_EQ(tenon_string_create("test.twice", 10, names[0]), 0);
    ASSERT_EQ(tenon_string_create("test.meet", 9, names[1]), 0);
    const tenon_any keys[] = {names[0].value, names[1].value};
    const tenon_any values[] = {twice.value, meet.value};
    ASSERT_EQ(tenon_map_create(keys, values, 2, functions), 0);
    ASSERT_EQ(tenon_module_create("test", functions, module), 0);
    tenon_load_options options = TENON_LOAD_DEFAULTS;
    options.modules = module;
    options.module_count = 1;
    ASSERT_EQ(tenon_program_from_bytes(bytes.data(), bytes.size(), &options, program), 0);
    ASSERT_EQ(tenon_machine_create(program, machine), 0);
  }
  int call(const char* function, int64_t n) {
    const tenon_any arg = integer(n);
    return tenon_machine_call(machine, function, &arg, 1, result);
  }
  int64_t value_of(const char* function, int64_t n) {
    EXPECT_EQ(failed(call(function, n)), "no error");
    return result.integer();
  }
  tenon_memory_stats memory() {
    tenon_memory_stats stats{};
    stats.size = sizeof stats;
    EXPECT_EQ(tenon_machine_memory(machine, &stats), 0);
    return stats;
  }
  int set(See* see) {
    return tenon_machine_set_instrument(machine, see ? call_see : nullptr, see, nullptr);
  }
};

// ---- memory ----

TEST_F(CMachine, CountsItsMemoryAndReturnsIt) {
  EXPECT_EQ(memory().allocated, 0);
  ASSERT_EQ(call("main", 1000), 0);
  EXPECT_EQ(memory().memory, TENON_MEMORY_POOLED);
  EXPECT_GE(memory().allocated, 4000);
  EXPECT_EQ(memory().pooled, 0) << "the result is in use";
  EXPECT_GE(memory().call_peak, memory().allocated);
  tenon_any_release(result);
  EXPECT_EQ(memory().pooled, memory().allocated);
  ASSERT_EQ(call("main", 1000), 0);
  EXPECT_EQ(memory().allocations, 2);
  EXPECT_EQ(memory().system_allocations, 1) << "reused";
  tenon_any_release(result);
  ASSERT_EQ(tenon_machine_trim(machine), 0);
  EXPECT_EQ(memory().allocated, 0);
  EXPECT_EQ(memory().pooled, 0);
  EXPECT_GE(memory().peak, 4000);
}

TEST_F(CMachine, KeepsNoMemoryIfItIsNaive) {
  tenon_machine_options options = TENON_MACHINE_DEFAULTS;
  options.memory = TENON_MEMORY_NAIVE;
  ASSERT_EQ(tenon_machine_create_with(program, &options, machine), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(call("main", 1000), 0);
    tenon_any_release(result);
    EXPECT_EQ(memory().allocated, 0);
  }
  EXPECT_EQ(memory().memory, TENON_MEMORY_NAIVE);
  EXPECT_EQ(memory().system_allocations, 2);
}

TEST_F(CMachine, MayBeMadeWithLimits) {
  tenon_limits limits = TENON_NO_LIMITS;
  limits.memory = 2000;
  tenon_machine_options options = TENON_MACHINE_DEFAULTS;
  options.limits = &limits;
  ASSERT_EQ(tenon_machine_create_with(program, &options, machine), 0);
  EXPECT_THAT(failed(call("main", 1000)), HasSubstr("the call would exceed its memory limit"));
}

TEST_F(CMachine, RunsGroupsOfCallsOnAsManyThreadsAsItIsTold) {
  tenon_limits limits = TENON_NO_LIMITS;
  limits.threads = 2;
  tenon_machine_options options = TENON_MACHINE_DEFAULTS;
  options.limits = &limits;
  options.inter_op = 2;
  ASSERT_EQ(tenon_machine_create_with(program, &options, machine), 0);
  ASSERT_EQ(call("meeting", 5), 0);
  EXPECT_EQ(result.integer(), 5);
  // A caller that knows only the first version's fields.
  options.size = offsetof(tenon_machine_options, inter_op);
  EXPECT_EQ(tenon_machine_create_with(program, &options, machine), 0);
}

TEST_F(CMachine, RefusesOptionsThatItDoesNotKnow) {
  tenon_machine_options options = TENON_MACHINE_DEFAULTS;
  options.inter_op = -1;
  EXPECT_THAT(failed(tenon_machine_create_with(program, &options, machine)),
              HasSubstr("threads for groups of calls is negative"));
  options.inter_op = 1;
  options.memory = 2;
  EXPECT_THAT(failed(tenon_machine_create_with(program, &options, machine)),
              HasSubstr("must be TENON_MEMORY_POOLED or TENON_MEMORY_NAIVE"));
  options.size = 3;
  EXPECT_THAT(failed(tenon_machine_create_with(program, &options, machine)),
              HasSubstr("set its first member to sizeof(tenon_machine_options)"));
  tenon_memory_stats stats{};
  EXPECT_THAT(failed(tenon_machine_memory(machine, &stats)),
              HasSubstr("set its first member to sizeof(tenon_memory_stats)"));
}

TEST_F(CMachine, FillsInOnlyTheStatisticsThatItsCallerKnows) {
  ASSERT_EQ(call("main", 1000), 0);
  EXPECT_GE(memory().call_bytes, 4000);
  tenon_memory_stats stats{};
  stats.size = offsetof(tenon_memory_stats, call_bytes);  // as in an older header
  stats.call_bytes = -1;
  ASSERT_EQ(tenon_machine_memory(machine, &stats), 0);
  EXPECT_EQ(stats.call_peak, memory().call_peak);
  EXPECT_EQ(stats.call_bytes, -1);
}

TEST_F(CMachine, IsTrimmedOnItsOwnThreadWhileItRuns) {
  std::string trim_error;
  See see = [&](const tenon_call_event&) {
    EXPECT_EQ(tenon_machine_trim(machine), 0) << "on its own thread";
    std::thread([&] {
      EXPECT_EQ(memory().allocated, 0) << "from any thread";
      trim_error = failed(tenon_machine_trim(machine));
    }).join();
    return TENON_INSTRUMENT_CONTINUE;
  };
  ASSERT_EQ(set(&see), 0);
  ASSERT_EQ(call("work", 1), 0);
  EXPECT_THAT(trim_error, HasSubstr("this machine runs a call on another thread"));
}

// ---- instruments ----

std::string text_of(const tenon_call_event& e) {
  std::string text =
      cat(e.before ? "before " : "after ", std::string_view(e.name.data, e.name.size), " in ",
          std::string_view(e.caller.data, e.caller.size));
  for (int32_t i = 0; i < e.arg_count; ++i) text += cat(" ", e.args[i].v.i);
  return e.before ? text : cat(text, " = ", e.result->v.i);
}

TEST_F(CMachine, ShowsAnInstrumentEveryCall) {
  std::vector<std::string> seen;
  std::vector<int32_t> kinds;
  See see = [&](const tenon_call_event& e) {
    EXPECT_EQ(std::strlen(e.name.data), e.name.size) << "also without a name";
    seen.push_back(text_of(e));
    if (e.before) kinds.push_back(e.kind);
    return TENON_INSTRUMENT_CONTINUE;
  };
  ASSERT_EQ(set(&see), 0);
  EXPECT_EQ(value_of("work", 4), 10);
  EXPECT_THAT(seen, ElementsAre("before increment in work 4", "after increment in work 4 = 5",
                                "before test.twice in work 5", "after test.twice in work 5 = 10"));
  EXPECT_EQ(value_of("through", 4), 5);
  EXPECT_THAT(kinds, ElementsAre(TENON_CALL_FUNCTION, TENON_CALL_PACKED, TENON_CALL_CLOSURE));
  EXPECT_EQ(seen[4], "before increment in through 4");
  EXPECT_EQ(seen[5], "after increment in through 4 = 5");
  seen.clear();
  EXPECT_EQ(value_of("jumps", 4), 5);
  EXPECT_THAT(seen, ElementsAre("before jump in jumps 4", "before increment in jump 4",
                                "after jump in jumps 4 = 5"));
  ASSERT_EQ(set(nullptr), 0);
  seen.clear();
  EXPECT_EQ(value_of("work", 4), 10);
  EXPECT_THAT(seen, ElementsAre());
}

TEST_F(CMachine, PrintsClosuresByName) {
  Out closure, text, array;
  const tenon_any n = integer(1);
  ASSERT_EQ(tenon_machine_call(machine, "closure", &n, 1, closure), 0);
  ASSERT_EQ(tenon_any_repr(closure, text), 0);
  EXPECT_EQ(text.view().as<std::string>(), "<closure @increment>");
  ASSERT_EQ(tenon_array_create(closure, 1, array), 0);
  ASSERT_EQ(tenon_any_repr(array, text), 0);
  EXPECT_EQ(text.view().as<std::string>(), "[<closure @increment>]");
}

TEST_F(CMachine, GivesAnInstrumentTheCalledFunction) {
  std::vector<int64_t> again;
  See see = [&](const tenon_call_event& e) {
    Out value;
    if (e.before) {
      EXPECT_EQ(tenon_function_call(e.function, e.args, e.arg_count, value), 0);
      again.push_back(value.integer());
    }
    return TENON_INSTRUMENT_CONTINUE;
  };
  ASSERT_EQ(set(&see), 0);
  EXPECT_EQ(value_of("work", 4), 10);
  EXPECT_EQ(value_of("through", 4), 5);
  EXPECT_THAT(again, ElementsAre(5, 10, 5));
}

TEST_F(CMachine, LetsAnInstrumentSkipCallsAndReplaceResults) {
  See see = [&](const tenon_call_event& e) {
    if (std::string_view(e.name.data) == "increment" && e.before) {
      *e.result = integer(100);
      return TENON_INSTRUMENT_SKIP;
    }
    if (!e.before) *e.result = integer(e.result->v.i + 1);
    return TENON_INSTRUMENT_CONTINUE;
  };
  ASSERT_EQ(set(&see), 0);
  EXPECT_EQ(value_of("work", 4), 201);
}

TEST_F(CMachine, StopsWithTheErrorOfAnInstrument) {
  See see = [&](const tenon_call_event&) {
    tenon_error_set(TENON_ERROR_UNSUPPORTED, "not this one");
    return -1;
  };
  ASSERT_EQ(set(&see), 0);
  EXPECT_THAT(failed(call("work", 4)), HasSubstr("not this one"));
  set(nullptr);
  EXPECT_EQ(value_of("work", 4), 10);
}

TEST_F(CMachine, SaysThatAnInstrumentFailedWithoutAnError) {
  See see = [](const tenon_call_event&) { return -1; };
  ASSERT_EQ(set(&see), 0);
  EXPECT_THAT(failed(call("work", 4)),
              StartsWith("error: a function of the host failed without setting an error"));
}

TEST_F(CMachine, ReleasesAResultThatAnInstrumentSetsBeforeACallThatItDoesNotSkip) {
  int released = 0, type = 0;
  const auto release = [](void* count) { ++*static_cast<int*>(count); };
  ASSERT_EQ(tenon_type_register("test.Released", nullptr, 0, &type), 0);
  Out object;
  ASSERT_EQ(tenon_object_create(type, nullptr, 0, &released, release, object), 0);
  See see = [&](const tenon_call_event& e) {
    if (e.before) tenon_any_copy(object, e.result);
    return TENON_INSTRUMENT_CONTINUE;
  };
  ASSERT_EQ(set(&see), 0);
  EXPECT_EQ(value_of("work", 4), 10);
  tenon_any_release(object);
  EXPECT_EQ(released, 1);
}

TEST_F(CMachine, ReleasesItsInstrument) {
  int released = 0;
  const auto release = [](void* count) { ++*static_cast<int*>(count); };
  const auto ignore = [](void*, const tenon_call_event*) { return 0; };
  ASSERT_EQ(tenon_machine_set_instrument(machine, ignore, &released, release), 0);
  ASSERT_EQ(tenon_machine_set_instrument(machine, ignore, &released, release), 0);
  EXPECT_EQ(released, 1);
  tenon_any_release(machine);
  EXPECT_EQ(released, 2);
}

TEST_F(CMachine, KeepsItsInstrumentWhileItRuns) {
  std::string error;
  See see = [&](const tenon_call_event&) {
    error = failed(set(nullptr));
    return TENON_INSTRUMENT_CONTINUE;
  };
  ASSERT_EQ(set(&see), 0);
  ASSERT_EQ(call("work", 1), 0);
  EXPECT_THAT(error, HasSubstr("a machine's instrument can't change while it runs"));
}

TEST_F(CMachine, ShowsItsInstrumentAllOfACallWhileItRefusesOthers) {
  int begun = 0, ended = 0;
  See see = [&](const tenon_call_event& e) {
    ++(e.before ? begun : ended);
    return TENON_INSTRUMENT_CONTINUE;
  };
  ASSERT_EQ(set(&see), 0);
  std::atomic<bool> done = false;
  std::thread other([&] {
    const tenon_any n = integer(1);
    while (!done) {
      Out ignored;
      tenon_machine_call(machine, "no_such_function", &n, 1, ignored);
    }
  });
  constexpr int kCalls = 20000;
  int calls = 0;
  for (int i = 0; i < kCalls; ++i) calls += call("work", 1) == 0;
  done = true;
  other.join();
  EXPECT_GT(calls, 0);
  EXPECT_EQ(begun, 2 * calls);
  EXPECT_EQ(ended, 2 * calls);
}

TEST_F(CMachine, TakesRawStringsAsStrings) {
  tenon_any text = TENON_NONE_VALUE;
  text.type_index = TENON_RAW_STRING;
  text.v.c_str = "a raw string";
  ASSERT_EQ(tenon_machine_call(machine, "same_text", &text, 1, result), 0) << tenon_last_error();
  EXPECT_EQ(result.value.type_index, TENON_STRING);
  text.v.c_str = nullptr;
  EXPECT_THAT(failed(tenon_machine_call(machine, "same_text", &text, 1, result)),
              HasSubstr("is a null pointer"));
}

// ---- calls by value, bound functions ----

TEST_F(CMachine, CallsFunctionValues) {
  Out increment, closure;
  const tenon_any n = integer(7);
  ASSERT_EQ(tenon_program_function(program, "increment", nullptr, increment), 0);
  ASSERT_EQ(tenon_machine_call_function(machine, increment, &n, 1, result), 0);
  EXPECT_EQ(result.integer(), 8);
  ASSERT_EQ(tenon_machine_call(machine, "closure", &n, 1, closure), 0);
  ASSERT_EQ(tenon_machine_call_function(machine, closure, &n, 1, result), 0);
  EXPECT_EQ(result.integer(), 8);
  ASSERT_EQ(tenon_program_function(program, "main", nullptr, increment), 0);
  ASSERT_EQ(tenon_machine_call_function(machine, increment, &n, 1, result), 0);
  EXPECT_EQ(memory().allocations, 1) << "from this machine's pool";

  tenon_limits limits = TENON_NO_LIMITS;
  limits.fuel = 0;
  ASSERT_EQ(tenon_machine_set_limits(machine, &limits), 0);
  EXPECT_THAT(failed(tenon_machine_call_function(machine, increment, &n, 1, result)),
              HasSubstr("out of fuel"));
  tenon_any null_function = TENON_NONE_VALUE;
  null_function.type_index = TENON_FUNCTION;
  EXPECT_THAT(failed(tenon_machine_call_function(machine, &null_function, &n, 1, result)),
              HasSubstr("is a null pointer"));
  EXPECT_THAT(failed(tenon_machine_call_function(machine, &n, &n, 1, result)),
              HasSubstr("a machine calls only functions of programs"));
}

TEST_F(CMachine, BindsTheFirstArguments) {
  Out subtract, from_ten, seven;
  ASSERT_EQ(tenon_program_function(program, "subtract", nullptr, subtract), 0);
  const tenon_any args[] = {integer(10), integer(3), integer(4)};
  ASSERT_EQ(tenon_function_bind(subtract, args, 1, from_ten), 0);
  ASSERT_EQ(tenon_function_call(from_ten, args + 1, 1, result), 0);
  EXPECT_EQ(result.integer(), 7);
  ASSERT_EQ(tenon_function_bind(from_ten, args + 1, 1, seven), 0);
  ASSERT_EQ(tenon_function_call(seven, nullptr, 0, result), 0);
  EXPECT_EQ(result.integer(), 7);
  EXPECT_THAT(failed(tenon_function_call(seven, args, 1, result)), HasSubstr("found     1"));
  EXPECT_THAT(failed(tenon_function_bind(from_ten, args, 2, seven)),
              HasSubstr("more arguments are bound than the function has parameters"));
  EXPECT_THAT(failed(tenon_function_bind(args, args, 1, seven)),
              HasSubstr("not a function of a program"));
}

// ---- outputs ----

TEST_F(CMachine, WritesResultsToOutputs) {
  const int64_t shape[] = {3};
  Out output, main, constant;
  ASSERT_EQ(tenon_tensor_create(shape, 1, f32, kCpu, output), 0);
  const tenon_any n = integer(3);
  ASSERT_EQ(tenon_machine_call_into(machine, "main", &n, 1, output, 1, result), 0);
  EXPECT_EQ(result.value.v.object, output.value.v.object);
  EXPECT_EQ(memory().allocations, 0);
  ASSERT_EQ(tenon_program_function(program, "main", nullptr, main), 0);
  ASSERT_EQ(tenon_function_call_into(main, &n, 1, output, 1, result), 0);
  EXPECT_EQ(result.value.v.object, output.value.v.object);
  const int64_t two[] = {2};
  ASSERT_EQ(tenon_tensor_create(two, 1, f32, kCpu, constant), 0);
  ASSERT_EQ(tenon_machine_call_into(machine, "constant", nullptr, 0, constant, 1, result), 0);
  EXPECT_EQ(static_cast<float*>(tenon_tensor_view(constant)->data)[1], 2);

  EXPECT_THAT(failed(tenon_machine_call_into(machine, "main", &n, 1, output, 2, result)),
              HasSubstr("a call needs one output, or None, for each result"));
  EXPECT_THAT(failed(tenon_machine_call_into(machine, "main", &n, 1, nullptr, 1, result)),
              HasSubstr("outputs must not be NULL"));
  EXPECT_THAT(failed(tenon_function_call_into(&n, &n, 1, output, 1, result)),
              HasSubstr("not a function of a program"));
}

}  // namespace
}  // namespace tenon

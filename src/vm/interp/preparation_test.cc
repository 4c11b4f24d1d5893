// Preparation: what a machine calls before the first call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "device/preparation.h"
#include "object/library.h"
#include "object/registry.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

std::string seen;  // what was called, with a '+' where it was only to prepare

// Functions of a library that write down their calls: "keep" prepares, "compute" doesn't.
Ref<Program> program_with(std::string_view main) {
  define_library("tenon_preparing", [] {
    const auto see = [](const char* name) {
      return [name](const Tensor& x) {
        seen += cat(name, is_preparing() ? "+ " : " ");
        EXPECT_TRUE(!is_preparing() || x.data_as<float>()[0] == 0) << "stale bytes";
      };
    };
    register_typed("test.keep", see("keep"), {.prepares = true});
    register_typed("test.compute", see("compute"));
    register_typed("test.fail", [](const Tensor&) { throw Error(ErrorKind::Runtime, "it fails"); },
                   {.prepares = true});
  });
  seen.clear();
  constexpr char kUsed[] =
      "library \"preparing\"\npacked $test.keep\npacked $test.compute\npacked $test.fail\n";
  return program_of(assemble(cat(kUsed, main)));
}

constexpr char kMain[] = R"(
func @main(x: tensor[2; f32]) -> i64 {
  match_tensor %0, f32, =2
  %1 = new_tensor cpu:0, f32, 2
  _ = call_packed $test.compute, %0
  _ = call_packed $test.keep, %0
  _ = call_packed $test.keep, %1
  ret 1
}
)";

Tensor ones() {
  Tensor t = Tensor::empty(std::vector<int64_t>{2}, f32);
  t.data_as<float>()[0] = t.data_as<float>()[1] = 1;
  return t;
}

TEST(Preparation, CallsWhatPreparesOnceForEachNumberOfThreads) {
  const Ref<Program> program = program_with(kMain);
  EXPECT_EQ(seen, "");
  Machine machine(program);
  EXPECT_EQ(seen, "keep+ keep+ ");
  Machine another(program);
  EXPECT_EQ(seen, "keep+ keep+ ");
  Limits limits;
  limits.threads = 1;
  Machine alone(program, limits);
  EXPECT_EQ(seen, "keep+ keep+ keep+ keep+ ");
  seen.clear();
  alone.call("main", ones());
  EXPECT_EQ(seen, "compute keep keep ");
}

TEST(Preparation, IsDoneForFunctionValues) {
  const Ref<Program> program = program_with(kMain);
  const Function main = program->function("main");
  EXPECT_EQ(seen, "keep+ keep+ ");
  main(ones());
  EXPECT_EQ(seen, "keep+ keep+ compute keep keep ");
}

TEST(Preparation, NeedsTensorsOfKnownSizes) {
  for (const char* type : {"tensor[n; f32]", "tensor[rank=1; f32]", "i64", "any"}) {
    Machine machine(program_with(cat("func @main(x: ", type, R"() -> i64 {
  %1 = new_tensor cpu:0, f32, 2
  _ = call_packed $test.keep, %1
  ret 1
})")));
    EXPECT_EQ(seen, "") << type;
  }
}

TEST(Preparation, EndsAtAnErrorThatTheCallReports) {
  Machine machine(program_with(R"(
func @main() -> i64 {
  %0 = new_tensor cpu:0, f32, 2
  _ = call_packed $test.keep, %0
  _ = call_packed $test.fail, %0
  _ = call_packed $test.keep, %0
  ret 1
})"));
  EXPECT_EQ(seen, "keep+ ");
  EXPECT_THAT(failure_of([&] { machine.call("main"); }), testing::HasSubstr("it fails"));
}

// The loop's condition would come from a function that isn't called.
TEST(Preparation, EndsLoops) {
  Machine machine(program_with(R"(
func @main() -> i64 {
  %0 = new_tensor cpu:0, f32, 2
again:
  _ = call_packed $test.compute, %0
  goto again
})"));
  EXPECT_EQ(seen, "");
}

// Whatever the functions are, whose calls nobody has asked for.
TEST(Preparation, TakesLittleAltogether) {
  std::string functions;
  for (int i = 0; i < 100; ++i) {
    functions += cat("func @f", i, R"(() -> i64 {
  %0 = new_tensor cpu:0, f32, 2
again:
  _ = call_packed $test.keep, %0
  goto again
}
)");
  }
  Machine machine(program_with(functions));
  const auto calls = std::ranges::count(seen, '+');
  EXPECT_GE(calls, 100);
  EXPECT_LE(calls, 10'000);
}

TEST(Preparation, KeepsToTheLimits) {
  Limits limits;
  limits.fuel = 10;
  Machine machine(program_with(R"(
func @main() -> i64 {
  %0 = new_tensor cpu:0, f32, 2
again:
  _ = call_packed $test.keep, %0
  goto again
})"),
                  limits);
  EXPECT_EQ(std::ranges::count(seen, '+'), 10);
  limits = {};
  limits.memory = 1 << 20;
  Machine small(program_with(R"(
func @main() -> i64 {
  %0 = new_tensor cpu:0, f32, 2
  _ = call_packed $test.keep, %0
  %1 = new_tensor cpu:0, f32, 1048576
  _ = call_packed $test.keep, %1
  ret 1
})"),
                limits);
  EXPECT_EQ(seen, "keep+ ");
}

// Zeros for parameters take no memory.
TEST(Preparation, OfLargeParameters) {
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // in KB
  };
  const auto before = peak();
  Machine machine(program_with(R"(
func @main(x: tensor[536870912; f32]) -> i64 {
  match_tensor %0, f32, =536870912
  _ = call_packed $test.keep, %0
  ret 1
})"));
  EXPECT_EQ(seen, "keep+ ");
  EXPECT_LT(peak() - before, 512 << 10);
}

// Memory that the first call writes is mapped before, also in a program whose functions are kernels
// alone.
TEST(Preparation, MapsTheMemoryOfTheFirstCall) {
  constexpr char kDoubled[] = R"(
kernel $doubled
func @main(x: tensor[1048576; f32]) -> any {
  match_tensor %0, f32, =1048576
  %1 = new_tensor cpu:0, f32, 1048576
  _ = call_packed $doubled, %0, %1
  %2 = new_tensor cpu:0, f32, 1048576
  _ = call_packed $doubled, %1, %2
  ret %2!
})";
  const Ref<Program> program = program_of(with_kernels(kDoubled, TENON_TEST_KERNELS));
  const Tensor x = Tensor::empty(std::vector<int64_t>{1 << 20}, f32);
  std::ranges::fill(std::span(x.data_as<float>(), 1 << 20), 1.0f);
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  Limits limits;
  limits.threads = 1;
  Machine machine(program, limits);
  const auto before = faults();
  const Any result = machine.call("main", x);
  EXPECT_LT(faults() - before, 256);  // of pages of 4 KB, for 8 MB
  EXPECT_EQ(result.as<Tensor>().data_as<float>()[1 << 19], 4);
}

TEST(Preparation, DoesNotCallFunctionsAsValues) {
  Machine machine(program_with(R"(
func @inner(x: tensor[2; f32]) -> i64 {
  _ = call_packed $test.keep, %0
  ret 1
}
func @main() -> i64 {
  %0 = new_tensor cpu:0, f32, 2
  %1 = load_packed $test.compute
  _ = call_closure %1, %0
  %1 = alloc_closure @inner
  %1 = call_closure %1, %0
  ret 1
})"));
  EXPECT_EQ(seen, "keep+ keep+ ");  // @inner itself, and @main's closure of it
}

}  // namespace
}  // namespace tenon::vm

// Compiled code beside bytecode: the same results, errors, frames and fuel.
#include <gmock/gmock.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <thread>

#include "driver/compile.h"
#include "object/array.h"
#include "object/reflect.h"
#include "object/registry.h"
#include "object/tensor.h"
#include "support/error_testing.h"
#include "vm/asm/assemble.h"
#include "vm/asm/constant_text.h"
#include "vm/executable/write_file.h"
#include "vm/interp/machine.h"

namespace tenon::driver {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

vm::Unit compiled_unit(const std::string& text) {
  initialise();
  vm::Unit unit = vm::assemble(text, "t.tna");
  unit.kernels.push_back(code_for_host(unit));
  return unit;
}

Ref<vm::Program> load(const vm::Unit& unit, bool bytecode_only = false) {
  vm::ProgramOptions options;
  options.bytecode_only = bytecode_only;
  return vm::Program::from_unit(unit, options);
}

// Also tells NaNs apart.
std::string exact(const AnyView& value) {
  if (value.type_index == TypeIndex::Float) return vm::constant_text(value, 0);
  const auto* array = value.as_object<ArrayObj>();
  if (!array) return repr(value);
  std::string text;
  for (const Any& item : *array) text += cat(text.empty() ? "" : ", ", exact(item));
  return cat("[", text, "]");
}

// What a call does, as text.
std::string outcome(vm::Machine& m, std::string_view function, std::span<const AnyView> args) {
  std::string text;
  try {
    text = exact(m.call(function, args));
  } catch (const Error& error) {
    text = error.render();
  }
  return cat(text, " fuel ", m.fuel_left());
}

// Runs both modes and expects them to agree; returns the outcome.
std::string agreed(const std::string& text, std::string_view function, std::vector<Any> args,
                   vm::Limits limits = {}) {
  limits.fuel = std::min<int64_t>(limits.fuel, 1000000);
  const vm::Unit unit = compiled_unit(text);
  const Ref<vm::Program> compiled = load(unit);
  EXPECT_NE(compiled->compiled(), nullptr);
  vm::Machine a(load(unit, true), limits), b(compiled, limits);
  const std::vector<AnyView> views(args.begin(), args.end());
  const std::string expected = outcome(a, function, views);
  std::string found = outcome(b, function, views);
  EXPECT_EQ(found, expected);
  // The machine is usable afterwards.
  EXPECT_EQ(outcome(b, function, views), expected);
  return found;
}

// Calls a function again and again, on another thread, as long as it lives.
class Meanwhile {
 public:
  explicit Meanwhile(std::function<void()> f)
      : thread_([this, f = std::move(f)] {
          while (!ended_) {
            f();
            std::this_thread::yield();
          }
        }) {}
  ~Meanwhile() {
    ended_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

constexpr char kFib[] = R"(
func @fib(n: i64) -> i64 {
  %1 = lt %0, 2
  if %1, more
  ret %0
more:
  %1 = sub %0, 1
  %1 = call @fib, %1!
  %0 = sub %0, 2
  %0 = call @fib, %0!
  %1 = add %1, %0
  ret %1!
}
)";

TEST(CompiledMode, Recurses) {
  EXPECT_EQ(agreed(kFib, "fib", {Any(20)}), "6765 fuel 978109");
}

TEST(CompiledMode, StopsAtEachLimitWhereBytecodeDoes) {
  vm::Limits limits;
  for (int64_t fuel : {0, 1, 2, 17, 100}) {
    limits.fuel = fuel;
    EXPECT_THAT(agreed(kFib, "fib", {Any(10)}, limits), HasSubstr("ran out of fuel"));
  }
  limits = {};
  limits.depth = 5;
  EXPECT_THAT(agreed(kFib, "fib", {Any(10)}, limits), HasSubstr("went too deep"));
}

// Where the stack ends, a call whose host asks goes as far as another: a tail call in place needs
// neither a frame nor registers.
TEST(CompiledMode, MayBeAskedWhereNoRoomIsLeft) {
  const vm::Unit unit = compiled_unit(R"(
func @spin(n: i64) -> i64 {
  %1 = gt %0, 0
  if %1, end
  %0 = sub %0, 1
  tail_call @spin, %0
end:
  ret %0
}
func @down(n: i64) -> i64 {
  %1 = gt %0, 0
  if %1, spin
  %0 = sub %0, 1
  %0 = call @down, %0
  ret %0
spin:
  %0 = call @spin, 1000000
  ret %0
}
)");
  for (const bool bytecode_only : {false, true}) {
    vm::Limits limits;
    limits.depth = 7;  // frames of @down for 5 to 0, and of @spin
    vm::Machine m(load(unit, bytecode_only), limits);
    const Meanwhile asks([&] { m.request_check(); });
    EXPECT_THAT(outcome(m, "down", std::vector<AnyView>{AnyView(5)}), StartsWith("0 fuel"));
    EXPECT_THAT(outcome(m, "down", std::vector<AnyView>{AnyView(6)}), HasSubstr("went too deep"));
  }
}

TEST(CompiledMode, RunsOutOfStackWhereBytecodeDoes) {
  const char* text = R"(
func @main(n: i64) -> i64 {
  registers 5
  %1 = alloc_closure @sum
  %0 = call @down, %0, %1
  ret %0
}
func @down(n: i64, c: any) -> i64 {
  registers 8
  %2 = le %0, 0
  if %2, more
  tail_call_closure %1!, 1, 2, 3
more:
  %0 = sub %0, 1
  %0 = call @down, %0, %1!
  ret %0
}
func @sum(a: i64, b: i64, c: i64) -> i64 {
  registers 8
  %0 = add %0, %1
  ret %0
}
)";
  vm::Limits limits;
  limits.stack_bytes = 64 << 10;
  int succeeded = 0;
  for (int depth = 505; depth < 515; ++depth) {  // of frames of 128 bytes
    succeeded += agreed(text, "main", {Any(depth)}, limits).starts_with("3 fuel");
  }
  EXPECT_GT(succeeded, 0);
  EXPECT_LT(succeeded, 10);
}

// What closures return is expected to be what its uses say, and may be anything.
TEST(CompiledMode, LeavesWhereAClosureReturnsAnotherType) {
  const char* text = R"(
const = "text"  ; #0
const = float 2.5  ; #1
func @text(n: i64) -> any {
  ret #0
}
func @next(n: i64) -> any {
  %0 = add %0, 1
  ret %0
}
func @list(n: i64) -> any {
  %0 = alloc_tuple %0, #0
  ret %0!
}
func @count(f: any, n: i64) -> i64 {
  %2 = load_int 0
  %3 = load_int 0
again:
  %4 = lt %3, %1
  if %4, end
  %2 = call_closure %0, %2
  %3 = add %3, 1
  goto again
end:
  ret %2
}
func @next_of(n: i64) -> any {
  %1 = alloc_closure @next
  %1 = call @count, %1!, %0
  ret %1
}
func @text_of(n: i64) -> any {
  %1 = alloc_closure @text
  %1 = call @count, %1!, %0
  ret %1!
}
func @list_of(n: i64) -> any {
  %1 = alloc_closure @list
  %1 = call @count, %1!, %0
  ret %1!
}
func @added(n: i64) -> any {
  %1 = alloc_closure @list
  %2 = call_closure %1, %0
  %2 = add %2, 1
  ret %2
}
func @floating(n: i64) -> any {
  %1 = alloc_closure @next
  %2 = call_closure %1, %0
  %2 = fadd %2, #1
  ret %2
}
)";
  EXPECT_THAT(agreed(text, "next_of", {Any(9)}), HasSubstr("9 fuel"));
  for (const char* function : {"text_of", "list_of"}) {
    agreed(text, function, {Any(1)});
    agreed(text, function, {Any(3)});
  }
  EXPECT_THAT(agreed(text, "added", {Any(3)}), HasSubstr("at added"));
  agreed(text, "floating", {Any(3)});
}

// Numbers of other types than the signatures say, in parameters and results.
TEST(CompiledMode, LeavesWhereATypeIsUnexpected) {
  const char* text = R"(
const = "text"  ; #0
func @id(n: i64) -> i64 {
  ret %0
}
func @lies(n: i64) -> i64 {
  ret #0
}
func @twice(n: any) -> any {
  %1 = call @id, %0
  %2 = call @id, 7
  %3 = alloc_tuple %1!, %2!, %0!
  ret %3!
}
func @lied(n: i64) -> any {
  %1 = call @lies, %0
  %2 = add %0, 1
  %3 = alloc_tuple %1!, %2
  ret %3!
}
func @adds(n: i64) -> any {
  %1 = call @lies, %0
  %1 = add %1, 1
  ret %1
}
)";
  EXPECT_THAT(agreed(text, "twice", {Any(String("s"))}), HasSubstr("[\"s\", 7, \"s\"]"));
  EXPECT_THAT(agreed(text, "twice", {Any(true)}), HasSubstr("[true, 7, true]"));
  EXPECT_THAT(agreed(text, "lied", {Any(1)}), HasSubstr("[\"text\", 2]"));
  EXPECT_THAT(agreed(text, "adds", {Any(1)}), HasSubstr("add needs an integer"));
}

TEST(CompiledMode, ReportsErrorsOfArithmeticWithAllFrames) {
  const char* text = R"(
func @down(n: i64, big: i64) -> i64 {
  %2 = gt %0, 0
  if %2, end
  %2 = sub %0, 1
  %2 = call @down, %2, %1
  %2 = add_checked %2, %1
  ret %2
end:
  %2 = floordiv %1, %0
  ret %2
}
)";
  const std::string divided = agreed(text, "down", {Any(3), Any(5)});
  EXPECT_THAT(divided, HasSubstr("repeated 2 times"));
  EXPECT_THAT(divided, HasSubstr("instruction 6"));
}

// Loops whose variables are numbers in one arm and values in the other, and registers that hold
// both.
// Of whichever operations, operands and constants; but what is only moved keeps its bits.
TEST(CompiledMode, MakesTheNaNsOfBytecode) {
  const char* text = R"(
const = float inf                      ; #0
const = float 0.0                      ; #1
const = float bits 0xfff8000000000321  ; #2
func @arithmetic(a: f64, b: f64) -> any {
  %2 = fadd %0, %1
  %3 = fsub %0, %1
  %4 = fmul %0, %1
  %5 = fdiv %0, %1
  %6 = frem %0, %1
  %7 = fsqrt %0
  %8 = round_float %4, f32
  %9 = fneg %4
  %10 = fmin %4, %0
  %11 = fmax %1, %5
  %12 = alloc_tuple %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11
  ret %12!
}
func @constants(a: f64) -> any {
  %1 = fmul #0, #1
  %2 = fsub #0, #0
  %3 = fadd #2, %0
  %4 = fmul %0, #1
  %5 = fadd %1, %3
  %6 = alloc_tuple %1, %2, %3, %4, %5, #2
  ret %6!
}
func @loop(n: i64, a: f64, b: f64) -> any {
  %3 = move %1
  %4 = move #1
  %5 = move #2
again:
  %6 = lt 0, %0
  if %6, end
  %0 = sub %0, 1
  %1 = fsub %1, %2
  %4 = fadd %4, %2
  %7 = select %6, %5, %4
  %5 = fadd %7, %1
  goto again
end:
  %6 = flt %1, %4
  %7 = select %6, %4, %1
  %8 = call @pass, %1, %4
  %0 = alloc_tuple %1, %3, %4, %5, %7, %8
  ret %0!
}
func @pass(a: f64, b: f64) -> any {
  %0 = alloc_tuple %0, %1
  ret %0!
}
)";
  const double nan = std::bit_cast<double>(0xfff8000000000123);
  const double numbers[] = {-0.0, -INFINITY, nan};
  for (const double a : numbers) {
    agreed(text, "constants", {Any(a)});
    for (const double b : numbers) {
      agreed(text, "arithmetic", {Any(a), Any(b)});
      for (const int n : {0, 1, 3}) agreed(text, "loop", {Any(n), Any(a), Any(b)});
    }
  }
  EXPECT_THAT(agreed(text, "constants", {Any(nan)}),
              HasSubstr("[float bits 0x7ff8000000000000, float bits 0x7ff8000000000000, "
                        "float bits 0x7ff8000000000000, float bits 0x7ff8000000000000, "
                        "float bits 0x7ff8000000000000, float bits 0xfff8000000000321]"));
}

// Of two numbers of whichever kinds.
TEST(CompiledMode, SelectsWhatBytecodeDoes) {
  const char* text = R"(
func @select(c: bool, i: i64, b: bool, x: f64) -> any {
  %4 = fadd %3, %3
  %5 = select %0, %1, %3
  %6 = select %0, %3, %1
  %7 = select %0, %2, %4
  %8 = select %0, %1, %2
  %9 = select %0, %4, %3
  %10 = alloc_tuple %5, %6, %7, %8, %9
  ret %10!
}
)";
  EXPECT_THAT(agreed(text, "select", {Any(true), Any(7), Any(false), Any(0.5)}),
              HasSubstr("[7, float 0.5, false, 7, float 1]"));
  EXPECT_THAT(agreed(text, "select", {Any(false), Any(7), Any(false), Any(0.5)}),
              HasSubstr("[float 0.5, 7, float 1, false, float 0.5]"));
}

TEST(CompiledMode, KeepsValuesOfAnyKindInLoops) {
  const char* text = R"(
const = "text"  ; #0
func @step(n: i64, x: any) -> any {
  ret %1!
}
func @mixed(n: i64) -> any {
  %1 = move 0
again:
  %2 = lt %0, 1
  if %2, more
  ret %1!
more:
  %0 = sub %0, 1
  %3 = floormod %0, 3
  if_eq %3, 1, text
  %1 = move %0
  goto next
text:
  %1 = load_const #0
next:
  %1 = call @step, %0, %1!
  goto again
}
)";
  for (int n : {0, 1, 2, 3, 7}) agreed(text, "mixed", {Any(n)});
  EXPECT_THAT(agreed(text, "mixed", {Any(1)}), HasSubstr("\"text\""));
}

TEST(CompiledMode, CallsClosuresAndFunctionsOfTheHost) {
  const char* text = R"(
packed $test.compiled_mode.twice
func @add3(a: i64, b: i64, c: i64) -> i64 {
  %3 = add %0, %1
  %3 = add %3, %2
  ret %3
}
func @apply(f: any, n: i64) -> any {
  %2 = call_closure %0, %1, 5
  tail_call_closure %0!, %2!, 1
}
func @main(n: i64) -> any {
  %1 = alloc_closure @add3, 100
  %2 = call @apply, %1!, %0
  %3 = load_packed $test.compiled_mode.twice
  %4 = call_closure %3, %2
  %5 = call_packed $test.compiled_mode.twice, %4
  %6 = alloc_tuple %2, %4, %5
  ret %6!
}
)";
  static const bool once = [] {
    register_function("test.compiled_mode.twice",
                      Function::from_typed([](int64_t x) { return 2 * x; }));
    return true;
  }();
  (void)once;
  EXPECT_THAT(agreed(text, "main", {Any(1)}), HasSubstr("[207, 414, 828]"));
}

Any zeros(std::initializer_list<int64_t> shape, DataType dtype = f32) {
  return Any(Tensor::empty(shape, dtype));
}

TEST(CompiledMode, MatchesTensors) {
  const char* text = R"(
func @sizes(x: any, n: i64) -> any {
  match_tensor %0, f32, ->%2, =3, *, =%1
  %3 = alloc_tuple %2, %1
  ret %3!
}
func @last_use(x: any, n: i64) -> any {
  match_tensor %0!, f32, ->%2, ->%2
  %1 = add %2, %1
  ret %1
}
func @stored_and_compared(x: any, n: i64) -> any {
  match_tensor %0, f32, ->%1, =%1
  ret %1
}
func @overwritten(x: any, n: i64) -> any {
  match_tensor %0, f32, ->%0, =3
  ret %0
}
func @over_a_value(x: any, n: i64) -> any {
  %2 = alloc_tuple %0, %1
  match_tensor %0, f32, ->%2, *
  %3 = move %2
  ret %3
}
func @scalar(x: any, n: i64) -> any {
  match_tensor %0, f32
  ret %1
}
)";
  const Any values[] = {
      zeros({2, 3, 1, 7}), zeros({2, 3, 1, 6}), zeros({2, 4, 1, 7}), zeros({2, 3}),
      zeros({3, 3}),       zeros({2, 3}, i32),  zeros({}),           Any(5),
      Any(Shape({2, 3}))};
  for (const char* function :
       {"sizes", "last_use", "stored_and_compared", "overwritten", "over_a_value", "scalar"}) {
    for (const Any& value : values) agreed(text, function, {value, Any(7)});
  }
  EXPECT_THAT(agreed(text, "sizes", {values[0], Any(7)}), HasSubstr("[2, 7] fuel"));
  EXPECT_THAT(agreed(text, "last_use", {values[3], Any(7)}), HasSubstr("10 fuel"));
  EXPECT_THAT(agreed(text, "stored_and_compared", {values[4], Any(7)}), HasSubstr("3 fuel"));
  EXPECT_THAT(agreed(text, "scalar", {values[6], Any(7)}), HasSubstr("7 fuel"));
}

// Seven arguments: more than travel in processor registers.
TEST(CompiledMode, PassesManyArguments) {
  const char* text = R"(
func @many(a: i64, b: any, c: i64, d: any, e: i64, f: any, g: f64) -> any {
  %7 = alloc_tuple %6, %5, %4, %3, %2, %1, %0
  ret %7!
}
func @turn(n: i64, a: i64, b: any, c: i64, d: any, e: i64, f: any) -> any {
  %7 = gt %0, 0
  if %7, end
  %0 = sub %0, 1
  tail_call @turn, %0, %3, %4!, %5, %6!, %1, %2!
end:
  %7 = call @many, %1, %2!, %3, %4!, %5, %6!, %0
  ret %7!
}
)";
  for (int n : {0, 1, 2, 3}) {
    agreed(text, "turn",
           {Any(n), Any(1), Any(String("b")), Any(3), Any(String("d")), Any(5), Any(6.5)});
  }
}

TEST(CompiledMode, IsStoppedByAnotherThread) {
  const vm::Unit unit = compiled_unit(R"(
func @spin(n: i64) -> i64 {
again:
  %0 = add %0, 1
  goto again
}
)");
  vm::Machine m(load(unit));
  {
    const Meanwhile stops([&] { m.cancel(); });
    EXPECT_THAT(outcome(m, "spin", std::vector<AnyView>{AnyView(0)}), HasSubstr("was cancelled"));
  }
  vm::Limits limits;
  limits.deadline = std::chrono::milliseconds(20);
  m.set_limits(limits);
  EXPECT_THAT(outcome(m, "spin", std::vector<AnyView>{AnyView(0)}), HasSubstr("past its deadline"));
}

TEST(CompiledMode, RunsBytecodeForAnInstrument) {
  const Ref<vm::Program> program = load(compiled_unit(kFib));
  vm::Machine m(program);
  int calls = 0;
  m.set_instrument([&](const vm::CallEvent& event) {
    calls += event.before;
    return vm::CallAction::Continue;
  });
  EXPECT_EQ(m.call("fib", 5).as<int64_t>(), 5);
  EXPECT_EQ(calls, 14);
}

TEST(CompiledMode, IsRefusedForOtherBytecode) {
  vm::Unit unit = compiled_unit(kFib);
  unit.functions[0].register_count += 1;
  EXPECT_THAT(failure_of([&] { load(unit); }), HasSubstr("compiled code of other bytecode"));
}

// Native code of a stranger's file never runs: without kernels, the bytecode does.
TEST(CompiledMode, IsIgnoredInAnUntrustedFile) {
  const std::string file = vm::write_to_bytes(compiled_unit(kFib));
  vm::ProgramOptions options;
  options.trusted = false;
  const Ref<vm::Program> program = vm::Program::load_bytes(file, options);
  EXPECT_EQ(program->compiled(), nullptr);
  vm::Machine m(program);
  EXPECT_EQ(m.call("fib", 10).as<int64_t>(), 55);
  options.trusted = true;
  EXPECT_NE(vm::Program::load_bytes(file, options)->compiled(), nullptr);
}

}  // namespace
}  // namespace tenon::driver

// Formulas beside what runs take: PoolStats::call_bytes.
#include "report/memory_formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "device/device.h"
#include "driver/compile.h"
#include "graph/ir/text.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/interp/machine.h"

namespace tenon::report {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Sizes = std::map<std::string, int64_t, std::less<>>;

std::optional<int64_t> value_of(const Sizes& sizes, std::string_view symbol) {
  const auto found = sizes.find(symbol);
  return found == sizes.end() ? std::nullopt : std::optional(found->second);
}

// A tensor of ones for a parameter, or its size as a number.
Any argument_for(const vm::Param& param, const Sizes& sizes) {
  if (param.type.kind == vm::SignatureType::Kind::Scalar) {
    return Any(value_of(sizes, cat("%", param.name)).value());
  }
  std::vector<int64_t> shape;
  for (const vm::SignatureDim& dim : param.type.dims) {
    shape.push_back(dim.is_constant() ? dim.value : value_of(sizes, dim.text).value());
  }
  const Tensor tensor = allocate_tensor(shape, param.type.dtype, kCpu);
  std::fill_n(tensor.data_as<char>(), tensor.bytes(), 0);
  if (param.type.dtype == f32) std::fill_n(tensor.data_as<float>(), tensor.count(), 1.0f);
  return Any(tensor);
}

vm::Unit compiled(const std::string& text, int level) {
  driver::initialise();
  driver::CompileOptions options;
  options.level = level;
  options.libraries = "none";
  return driver::compile(graph::parse_module(text, "test.tn"), options);
}

// What a turn of the loop that the only unknown counts adds to the formula.
int64_t bytes_of_a_turn(const MemoryFormula& formula) {
  const auto bytes = [&](int64_t turns) {
    return evaluate(formula.bytes, [&](std::string_view) { return turns; });
  };
  return bytes(10).value() - bytes(9).value();
}

// What a call of main takes, and what its formula says for these sizes and unknowns.
struct Measured {
  std::string formula;
  int64_t bound = -1, taken = -1;
};

Measured measure(const vm::Unit& unit, const Sizes& sizes) {
  const auto main = static_cast<size_t>(unit.find_exported("main"));
  const MemoryFormula formula = memory_formulas(unit)[main];
  Measured out;
  out.formula = to_text(formula.bytes);
  const auto bound =
      evaluate(formula.bytes, [&](std::string_view symbol) { return value_of(sizes, symbol); });
  EXPECT_TRUE(bound) << out.formula;
  out.bound = bound.value_or(-1);
  std::vector<Any> arguments;
  for (const vm::Param& param : unit.functions[main].params) {
    arguments.push_back(argument_for(param, sizes));
  }
  vm::Machine machine(vm::Program::from_unit(unit));
  const std::vector<AnyView> views(arguments.begin(), arguments.end());
  machine.call("main", views);
  out.taken = static_cast<int64_t>(machine.memory().call_bytes);
  // Pooled memory changes nothing.
  machine.call("main", views);
  EXPECT_EQ(static_cast<int64_t>(machine.memory().call_bytes), out.taken);
  return out;
}

struct Program {
  const char* name;
  const char* text;
  Sizes sizes;
  bool exact;
};

void PrintTo(const Program& program, std::ostream* out) {
  *out << program.name;
}

constexpr const char* kChain = R"(
fn @main(%x: tensor[16, 32; f32], %w: tensor[32, 64; f32]) -> tensor[16, 64; f32] {
  %a = matmul(%x, %w)
  %b = softmax(%a, axis=-1)
  %c = cumsum(%b, axis=0)
  %d = cumsum(%c, axis=1)
  relu(%d)
})";
constexpr const char* kSymbols = R"(
fn @main(%x: tensor[n, 32; f32], %w: tensor[32, m; f32]) -> (tensor[n, m; f32], tensor[m, n; f32]) {
  %a = matmul(%x, %w)
  %b = cumsum(%a, axis=0)
  %c = cumsum(%b, axis=1)
  %d = transpose(%c, perm=[1, 0])
  %e = cumsum(%d, axis=0)
  (%c, %e)
})";
constexpr const char* kBranch = R"(
fn @main(%x: tensor[n; f32], %k: i64) -> tensor[n; f32] {
  %big = greater(%k, 3)
  %y = if %big {
    %a = cumsum(%x, axis=0)
    %b = cumsum(%a, axis=0)
    cumsum(%b, axis=0)
  } else {
    cumsum(%x, axis=0)
  }
  cumsum(%y, axis=0)
})";
constexpr const char* kLoop = R"(
fn @main(%x: tensor[n; f32], %k: i64) -> tensor[n; f32] {
  %r = loop (%i: i64 = 0, %y: tensor[n; f32] = %x) while {
    less(%i, %k)
  } {
    %a = cumsum(%y, axis=0)
    %b = cumsum(%a, axis=0)
    %j = add(%i, 1)
    (%j, %b)
  }
  %r.1
})";
constexpr const char* kStaticLoop = R"(
fn @main(%x: tensor[64; f32]) -> tensor[64; f32] {
  %r = loop (%i: i64 = 0, %y: tensor[64; f32] = %x) while {
    less(%i, 5)
  } {
    %a = cumsum(%y, axis=0)
    %b = cumsum(%a, axis=0)
    %j = add(%i, 1)
    (%j, %b)
  }
  %r.1
})";
constexpr const char* kCalls = R"(
fn @main(%x: tensor[64; f32]) -> tensor[64; f32] {
  %a = @twice(%x)
  %b = @twice(%a)
  add(%a, %b)
}
fn @twice(%x: tensor[64; f32]) -> tensor[64; f32] {
  %a = cumsum(%x, axis=0)
  cumsum(%a, axis=0)
})";
constexpr const char* kRecursion = R"(
fn @main(%x: tensor[n; f32], %k: i64) -> tensor[n; f32] {
  @down(%x, %k)
}
fn @down(%x: tensor[n; f32], %k: i64) -> tensor[n; f32] {
  %end = less(%k, 1)
  if %end {
    cumsum(%x, axis=0)
  } else {
    %a = cumsum(%x, axis=0)
    %j = sub(%k, 1)
    %b = @down(%a, %j)
    add(%a, %b)
  }
})";
constexpr const char* kList = R"(
fn @main(%x: tensor[n; f32], %k: i64) -> list[tensor[n; f32]] {
  @build(%x, %k)
}
fn @build(%x: tensor[n; f32], %k: i64) -> list[tensor[n; f32]] {
  %end = less(%k, 1)
  if %end {
    Nil
  } else {
    %a = cumsum(%x, axis=0)
    %j = sub(%k, 1)
    %rest = @build(%x, %j)
    Cons(%a, %rest)
  }
})";
constexpr const char* kSum = R"(
fn @main(%x: tensor[n; f32], %k: i64) -> tensor[n; f32] {
  %xs = @build(%x, %k)
  @sum(%xs, %x)
}
fn @build(%x: tensor[n; f32], %k: i64) -> list[tensor[n; f32]] {
  %end = less(%k, 1)
  if %end { Nil } else {
    %a = cumsum(%x, axis=0)
    %j = sub(%k, 1)
    %rest = @build(%x, %j)
    Cons(%a, %rest)
  }
}
fn @sum(%xs: list[tensor[n; f32]], %zero: tensor[n; f32]) -> tensor[n; f32] {
  match %xs {
    Nil => { %zero }
    Cons(%first, %rest) => {
      %a = cumsum(%first, axis=0)
      %b = @sum(%rest, %zero)
      add(%a, %b)
    }
  }
})";
constexpr const char* kMap = R"(
fn @main(%x: tensor[n; f32], %k: i64) -> list[tensor[n; f32]] {
  %xs = @same(%x, %k)
  @map(%xs, %x)
}
fn @same(%x: tensor[n; f32], %k: i64) -> list[tensor[n; f32]] {
  %end = less(%k, 1)
  if %end { Nil } else {
    %j = sub(%k, 1)
    %rest = @same(%x, %j)
    Cons(%x, %rest)
  }
}
fn @map(%xs: list[tensor[n; f32]], %x: tensor[n; f32]) -> list[tensor[n; f32]] {
  match %xs {
    Nil => { Nil }
    Cons(%first, %rest) => {
      %a = cumsum(%first, axis=0)
      %b = @map(%rest, %x)
      Cons(%a, %b)
    }
  }
})";
constexpr const char* kClosure = R"(
fn @main(%x: tensor[n; f32]) -> tensor[n; f32] {
  %a = cumsum(%x, axis=0)
  %f = fn(%y: tensor[n; f32]) -> tensor[n; f32] { %s = add(%a, %y)  cumsum(%s, axis=0) }
  %b = @apply(%f, %x)
  @apply(%f, %b)
}
fn @apply(%f: fn(tensor[n; f32]) -> tensor[n; f32], %x: tensor[n; f32]) -> tensor[n; f32] {
  %f(%x)
})";

class Programs : public testing::TestWithParam<Program> {};

TEST_P(Programs, RunInWhatTheFormulaSays) {
  const Program& program = GetParam();
  for (const int level : {0, 1, 2}) {
    const Measured found = measure(compiled(program.text, level), program.sizes);
    SCOPED_TRACE(cat("-O ", level, ": ", found.formula));
    if (program.exact) {
      EXPECT_EQ(found.bound, found.taken);
    } else {
      EXPECT_GE(found.bound, found.taken);
      EXPECT_LE(found.bound, 4 * found.taken);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Memory, Programs,
    testing::Values(Program{"chain", kChain, {}, true},
                    Program{"symbols", kSymbols, {{"n", 24}, {"m", 40}}, true},
                    Program{"wide_symbols", kSymbols, {{"n", 3}, {"m", 1000}}, true},
                    Program{"long_arm", kBranch, {{"n", 100}, {"%k", 5}}, false},
                    Program{"short_arm", kBranch, {{"n", 100}, {"%k", 1}}, false},
                    Program{"loop", kLoop, {{"n", 100}, {"%k", 9}}, true},
                    Program{"static_loop", kStaticLoop, {}, true},
                    Program{"calls", kCalls, {}, true},
                    Program{"recursion",
                            kRecursion,
                            {{"n", 100}, {"%k", 9}, {"depth(@down)", 10}, {"calls(@down)", 10}},
                            false},
                    Program{"list",
                            kList,
                            {{"n", 100}, {"%k", 9}, {"depth(@build)", 10}, {"calls(@build)", 10}},
                            false},
                    Program{"sum",
                            kSum,
                            {{"n", 100},
                             {"%k", 9},
                             {"depth(@build)", 10},
                             {"calls(@build)", 10},
                             {"length(@sum.xs)", 9}},
                            false},
                    Program{"map", kMap, {{"n", 100}, {"%k", 9}, {"length(@map.xs)", 9}}, false},
                    Program{"closure", kClosure, {{"n", 100}}, false}),
    [](const auto& info) { return info.param.name; });

std::string formula_of(const std::string& body) {
  const vm::Unit unit = compiled(cat("fn @f(%xs: list[i64], %k: i64, %x: tensor[n; f32]) -> "
                                     "tensor[n; f32] {\n",
                                     body, "\n}"),
                                 1);
  return to_text(memory_formulas(unit)[static_cast<size_t>(unit.find_exported("f"))].bytes);
}

TEST(MemoryFormula, BoundsRecursionByAListThatEachCallShortens) {
  const auto matched = [](const char* call, const char* arm = "%x") {
    return formula_of(cat("match %xs { Nil => { ", arm, " }, Cons(%first, %rest) => { ",
                          "%a = cumsum(%x, axis=0)\n", call, "\nadd(%a, %b) } }"));
  };
  EXPECT_THAT(matched("%b = @f(%rest, %k, %x)"), HasSubstr("length(@f.xs)"));
  EXPECT_THAT(matched("%c = @f(%rest, %k, %x)\n%b = @f(%rest, %first, %c)"),
              HasSubstr("length(@f.xs)"));
  EXPECT_THAT(matched("%b = match %rest { Nil => { %x }, Cons(_, %r) => { @f(%r, %k, %x) } }"),
              HasSubstr("length(@f.xs)"));
  for (const char* call : {"%b = @f(%xs, %k, %x)", "%l = Cons(1, %rest)\n%b = @f(%l, %k, %x)",
                           "%c = @f(%rest, %k, %x)\n%b = @f(%xs, %k, %c)",
                           "%z = less(%k, 1)\n%l = if %z { %xs } else { %rest }\n"
                           "%b = @f(%l, %k, %x)"}) {
    EXPECT_THAT(matched(call), HasSubstr("depth(@f)")) << call;
  }
  EXPECT_THAT(matched("%b = @f(%rest, %k, %x)", "@f(%xs, %k, %x)"), HasSubstr("length(@f.xs)"));
}

MemoryFormula of_assembly(const std::string& text) {
  return memory_formulas(vm::assemble(text)).front();
}

TEST(MemoryFormula, CountsAStorageUntilNoRegisterLeadsToIt) {
  EXPECT_EQ(of_assembly(R"(
func @main(x: any) -> any {
  %1 = alloc_storage 100, 64, cpu:0
  %2 = alloc_tensor %1!, 0, f32, 4
  %3 = alloc_tuple %2!
  %4 = alloc_storage 10, 64, cpu:0
  %2 = get_field %3!, 0
  kill %2
  %5 = alloc_storage 95, 64, cpu:0
  ret %5
})")
                .bytes,
            Dim(110));
}

TEST(MemoryFormula, HasTheLargerOfTwoPathsAndWhatTheyShare) {
  EXPECT_EQ(to_text(of_assembly(R"(
func @main(x: tensor[n, m; f32], c: i64) -> any {
  match_tensor %0, f32, ->%2, ->%3
  %6 = new_tensor cpu:0, f32, %2
  if %1, other
  %4 = new_tensor cpu:0, f32, %2, %2
  goto end
other:
  %4 = new_tensor cpu:0, f32, %3, %3
end:
  ret %4
})")
                        .bytes),
            "4*n + max(4*m*m, 4*n*n)");
}

TEST(MemoryFormula, NamesSizesThatOnlyARunKnows) {
  const MemoryFormula formula = of_assembly(R"(
func @main(x: any) -> any {
  read_elements %0, %1
  %2 = new_tensor cpu:0, f32, %1
  ret %2
})");
  ASSERT_EQ(formula.unknowns.size(), 1u);
  EXPECT_THAT(formula.unknowns[0].symbol, StartsWith("element(@main."));
  EXPECT_THAT(formula.unknowns[0].meaning, HasSubstr("an element that is read at @main."));
}

TEST(MemoryFormula, CountsTheTurnsOfALoopThatKeepsWhatItMakes) {
  const MemoryFormula formula = of_assembly(R"(
func @main(k: i64) -> any {
  %1 = alloc_tuple
again:
  %2 = new_tensor cpu:0, f32, 16
  %1 = alloc_tuple %1!, %2!
  %0 = sub %0, 1
  if %0, end
  goto again
end:
  ret %1
})");
  ASSERT_EQ(formula.unknowns.size(), 1u);
  EXPECT_THAT(formula.unknowns[0].symbol, StartsWith("turns(@main."));
  const auto bytes = [&](int64_t turns) {
    return evaluate(formula.bytes, [&](std::string_view) { return turns; });
  };
  EXPECT_GE(bytes(0), 64);
  EXPECT_EQ(*bytes(10) - *bytes(9), 64);
}

// The compiler's loops are entered at their condition, behind their body.
TEST(MemoryFormula, CountsTheTurnsOfALoopThatBeginsWithItsCondition) {
  const MemoryFormula formula = of_assembly(R"(
func @main(k: i64) -> any {
  %1 = alloc_tuple
  goto condition
again:
  %2 = new_tensor cpu:0, f32, 16
  %1 = alloc_tuple %1!, %2!
  %0 = sub %0, 1
condition:
  %3 = le %0, 0
  if %3, again
  ret %1
})");
  ASSERT_EQ(formula.unknowns.size(), 1u);
  EXPECT_EQ(bytes_of_a_turn(formula), 64);
}

// The call leads to the first instruction, too.
TEST(MemoryFormula, CountsTheTurnsOfALoopThatAFunctionBeginsWith) {
  const MemoryFormula formula = of_assembly(R"(
func @main(k: i64, kept: any) -> any {
again:
  %2 = new_tensor cpu:0, f32, 16
  %1 = alloc_tuple %1!, %2!
  %0 = sub %0, 1
  if %0, end
  goto again
end:
  ret %1
})");
  ASSERT_EQ(formula.unknowns.size(), 1u);
  EXPECT_EQ(bytes_of_a_turn(formula), 64);
}

TEST(MemoryFormula, EndsForCodeThatNoCompilerMakes) {
  // Numbers that change in each turn, sizes that overflow, jumps into loops, recursion through a
  // closure that arrives as an argument.
  for (const char* text : {R"(
func @main(n: i64, x: any) -> any {
again:
  %0 = mul %0, 3
  %1 = alloc_storage %0, 64, cpu:0
  if %0, again
  %1 = alloc_storage 36028797018963967, 64, cpu:0
  %1 = new_tensor cpu:0, f32, 36028797018963967, 36028797018963967
  goto again
})",
                           R"(
func @main(n: i64, x: any) -> any {
  if %0, inside
again:
  %1 = alloc_tuple %1!
inside:
  %2 = alloc_storage 8, 64, cpu:0
  %1 = alloc_tuple %1!, %2!
  goto again
})",
                           R"(
func @main(f: any, x: any) -> any {
  %2 = alloc_closure @main, %0
  %3 = call_closure %2, %1
  %4 = call @main, %2, %3
  tail_call @main, %3, %4
})"}) {
    EXPECT_FALSE(to_text(of_assembly(text).bytes).empty());
  }
}

}  // namespace
}  // namespace tenon::report

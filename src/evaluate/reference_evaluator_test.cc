#include "evaluate/reference_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "graph/ir/module.h"
#include "graph/ir/text.h"
#include "graph/op/register.h"
#include "loop/types.h"
#include "object/cell.h"
#include "object/function.h"

namespace tenon::graph {
namespace {

class ReferenceEvaluatorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    loop::register_loop_types();
    register_graph_types();
    register_operators();
  }

  std::vector<Any> run(const char* text, const std::vector<Any>& args,
                       std::string_view function = "main") {
    const Module module = parse_module(text, "test.tn");
    return evaluator_.run(module, *module->functions.find(String(function)), args);
  }

  std::string error_of(const char* text, const std::vector<Any>& args,
                       std::string_view function = "main") {
    try {
      run(text, args, function);
    } catch (const Error& error) {
      return error.render();
    }
    return "no error";
  }

  static Tensor floats(const std::vector<int64_t>& shape, const std::vector<float>& values) {
    return Tensor::copy_of(shape, f32, std::span<const float>(values));
  }

  static std::vector<float> values_of(const Any& value) {
    const Tensor tensor = value.as<Tensor>();
    return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.count()};
  }

  ReferenceEvaluator evaluator_{codegen::baseline_target()};
};

TEST_F(ReferenceEvaluatorTest, RunsOperatorsOnSymbolicShapes) {
  const char* text = R"(
    fn @main(%x: tensor[n; f32]) -> tensor[n; f32] {
      %y = relu(%x)
      %z = add(%y, %y)
      %z
    })";
  EXPECT_EQ(values_of(run(text, {floats({3}, {-1, 2, 3})})[0]), (std::vector<float>{0, 4, 6}));
  EXPECT_EQ(values_of(run(text, {floats({1}, {5})})[0]), (std::vector<float>{10}));
}

// Kernel objects of earlier runs stay open and must not be confused with later ones.
TEST_F(ReferenceEvaluatorTest, KeepsTheKernelsOfSeveralRunsApart) {
  const char* unary = R"(fn @main(%x: tensor[2; f32]) -> tensor[2; f32] { %y = neg(%x)  %y })";
  const char* binary =
      R"(fn @main(%x: tensor[2; f32], %y: tensor[2; f32]) -> tensor[2; f32] { %z = mul(%x, %y)  %z })";
  const Tensor x = floats({2}, {2, 3});
  EXPECT_EQ(values_of(run(unary, {x})[0]), (std::vector<float>{-2, -3}));
  EXPECT_EQ(values_of(run(binary, {x, x})[0]), (std::vector<float>{4, 9}));
  EXPECT_EQ(values_of(run(unary, {x})[0]), (std::vector<float>{-2, -3}));
}

TEST_F(ReferenceEvaluatorTest, RunsRecursionAndBranchesOnScalars) {
  const char* text = R"(
    fn @fib(%n: i64) -> i64 {
      %small = less(%n, 2)
      %r = if %small { %n } else {
        %a = sub(%n, 1)
        %b = sub(%n, 2)
        %fa = @fib(%a)
        %fb = @fib(%b)
        %s = add(%fa, %fb)
        %s
      }
      %r
    })";
  EXPECT_EQ(run(text, {Any(int64_t{10})}, "fib")[0].as<int64_t>(), 55);
}

TEST_F(ReferenceEvaluatorTest, BindsTheSizesOfABlockEachTimeAnew) {
  const char* text = R"(
    fn @main(%x: tensor[k; f32], %n: i64) -> tensor[rank=1; f32] {
      %r = loop (%i: i64 = 0, %v: tensor[rank=1; f32] = %x) while { less(%i, %n) } {
        %u = match_shape(%v, [d])
        %w = concat(%u, %u, axis=0)
        %j = add(%i, 1)
        (%j, %w)
      }
      %r.1
    })";
  const std::vector<Any> found = run(text, {floats({1}, {7}), Any(int64_t{3})});
  EXPECT_EQ(found[0].as<Tensor>().dim(0), 8);
}

// Each level of `deeper` is a call within `nested` ifs.
std::string recursion(int nested) {
  std::string text = R"(
    fn @deeper(%n: i64) -> i64 {
      %more = less(0, %n)
)";
  for (int i = 0; i < nested; ++i) text += cat("%r", i, " = if %more {\n");
  text += R"(
      %less = sub(%n, 1)
      %below = @deeper(%less)
      %here = add(%below, 1)
      %here
)";
  for (int i = nested - 1; i >= 0; --i) text += cat("} else { %n }\n%r", i, "\n");
  return text + "}";
}

TEST_F(ReferenceEvaluatorTest, CallsAndBlocksTakeNoNativeStack) {
  EXPECT_EQ(run(recursion(1).c_str(), {Any(int64_t{100'000})}, "deeper")[0].as<int64_t>(), 100'000);
  EXPECT_EQ(run(recursion(90).c_str(), {Any(int64_t{3000})}, "deeper")[0].as<int64_t>(), 3000);
}

// Planning a long chain of calls doesn't recurse either.
TEST_F(ReferenceEvaluatorTest, AChainOfManyFunctionsIsPlannedAndRun) {
  constexpr int kFunctions = 30'000;
  std::string text = "fn @f0(%n: i64) -> i64 { %n }\n";
  for (int i = 1; i < kFunctions; ++i) {
    text += cat("fn @f", i, "(%n: i64) -> i64 { @f", i - 1, "(%n) }\n");
  }
  const std::string last = cat("f", kFunctions - 1);
  EXPECT_EQ(run(text.c_str(), {Any(int64_t{7})}, last)[0].as<int64_t>(), 7);
}

TEST_F(ReferenceEvaluatorTest, LimitsDepthWhereTheLastCallStands) {
  evaluator_.state().max_depth = 10;
  EXPECT_EQ(run(recursion(2).c_str(), {Any(int64_t{9})}, "deeper")[0].as<int64_t>(), 9);
  EXPECT_EQ(error_of(recursion(2).c_str(), {Any(int64_t{10})}, "deeper"),
            "error: test.tn:8:7: the call went too deep\n"
            "  expected  at most 10 frames\n"
            "  at deeper at test.tn:8:7\n"
            "  at the frame above, repeated 9 times\n"
            "  help: raise the call's depth limit, or look for infinite recursion");
}

TEST_F(ReferenceEvaluatorTest, LimitsWhatItsStackTakes) {
  evaluator_.state().max_stack_bytes = 1 << 20;
  EXPECT_THAT(
      error_of(recursion(1).c_str(), {Any(int64_t{1 << 16})}, "deeper"),
      testing::AllOf(
          testing::StartsWith("error: test.tn:7:7: the call ran out of stack\n"
                              "  expected  at most 1048576 bytes\n"
                              "  at deeper at test.tn:7:7\n"
                              "  at the frame above, repeated "),
          testing::EndsWith(" times\n  help: raise the call's stack limit, or look for infinite "
                            "recursion")));
  // Blocks that have ended don't count.
  const char* text = R"(
    fn @same(%n: i64) -> i64 { %n }
    fn @main(%n: i64) -> i64 {
      loop (%i: i64 = 0) while { less(%i, %n) } {
        %j = @same(%i)
        %k = add(%j, 1)
        %k
      }
    })";
  EXPECT_EQ(run(text, {Any(int64_t{20'000})})[0].as<int64_t>(), 20'000);
}

constexpr char kAdder[] = R"(
    fn @adder(%k: i64, %x: tensor[n; f32]) -> fn(i64) -> i64 {
      fn %self(%i: i64) -> i64 {
        %s = add(%i, %k)
        %c = size(n)
        %big = less(%c, %i)
        if %big { 0 } else { add(%s, %c) }
      }
    })";

TEST_F(ReferenceEvaluatorTest, ClosuresOutliveTheirEvaluator) {
  Function adder;
  {
    ReferenceEvaluator evaluator(codegen::baseline_target());
    const Module module = parse_module(kAdder, "test.tn");
    adder = evaluator
                .run(module, *module->functions.find("adder"),
                     {Any(int64_t{100}), floats({3}, {1, 2, 3})})[0]
                .as<Function>();
  }
  EXPECT_EQ(adder(int64_t{2}).as<int64_t>(), 105);
  int64_t elsewhere = 0;
  std::thread([&] { elsewhere = adder(int64_t{9}).as<int64_t>(); }).join();
  EXPECT_EQ(elsewhere, 0);
  EXPECT_THROW(adder(), Error);
}

TEST_F(ReferenceEvaluatorTest, CallsTheHostsFunctions) {
  const char* text = R"(
    fn @main(%f: fn(i64) -> i64, %n: i64) -> i64 {
      %y = %f(%n)
      add(%y, 1)
    })";
  const Function twice = Function::from_typed([](int64_t x) { return 2 * x; });
  EXPECT_EQ(run(text, {Any(twice), Any(int64_t{5})})[0].as<int64_t>(), 11);
}

TEST_F(ReferenceEvaluatorTest, TensorsOfHostsMayHaveStridesAndAnyAddress) {
  static int64_t data[] = {7, 1, 3, 5, 2}, shape[] = {2}, strides[] = {-2};
  const auto tensor_at = [](uint64_t offset, int64_t* its_strides) {
    auto* managed = new DLManagedTensor{};
    managed->dl_tensor = {data, kCpu, 1, i64, shape, its_strides, offset};
    managed->deleter = [](DLManagedTensor* self) { delete self; };
    return Tensor::from_dlpack(managed);
  };
  const Any backwards(tensor_at(2 * sizeof(int64_t), strides));  // 3, 7
  const char* text = R"(
    fn @sizes(%x: tensor[2; i64]) -> i64 {
      %y = match_elements(%x, [a, b])
      add(size(a), size(100*b))
    }
    fn @first(%xs: list[tensor[2; i64]]) -> (i64, tensor[2; i64]) {
      match %xs {
        Cons(%x, _) => {
          %sizes = @sizes(%x)
          %twice = add(%x, %x)
          (%sizes, %twice)
        }
        Nil => { (0, tensor[2; i64]{0, 0}) }
      }
    }
    fn @main(%x: tensor[2; i64], %xs: list[tensor[2; i64]], %f: fn() -> tensor[2; i64]) -> (i64, i64, tensor[2; i64], i64) {
      %a = @sizes(%x)
      %b = @first(%xs)
      %y = %f()
      %c = @sizes(%y)
      (%a, %b.0, %b.1, %c)
    })";
  const std::vector<Any> fields = {backwards, Any(CellObj::of(0, size_t{0}))};
  const Any list(CellObj::of(1, fields));
  const Function give = Function::from_typed([=] { return backwards; });
  const std::vector<Any> results = run(text, {backwards, list, Any(give)});
  EXPECT_EQ(results[0].as<int64_t>(), 703);
  EXPECT_EQ(results[1].as<int64_t>(), 703);
  const auto twice = results[2].as<Tensor>();
  EXPECT_EQ(twice.data_as<int64_t>()[0], 6);
  EXPECT_EQ(twice.data_as<int64_t>()[1], 14);
  EXPECT_EQ(results[3].as<int64_t>(), 703);

  const Any unaligned(tensor_at(1, nullptr));
  const char* same = "fn @main(%x: tensor[2; i64]) -> tensor[2; i64] { sub(%x, %x) }";
  EXPECT_EQ(run(same, {unaligned})[0].as<Tensor>().data_as<int64_t>()[1], 0);
}

TEST_F(ReferenceEvaluatorTest, TailCallsTakeNoRoom) {
  evaluator_.state().max_depth = 10;
  const char* text = R"(
    fn @even(%n: i64) -> bool {
      match %n {
        0 => { true }
        _ => {
          %m = sub(%n, 1)
          @odd(%m)
        }
      }
    }
    fn @odd(%n: i64) -> bool {
      %zero = equal(%n, 0)
      if %zero { false } else {
        %m = sub(%n, 1)
        @even(%m)
      }
    })";
  EXPECT_FALSE(run(text, {Any(int64_t{10'001})}, "even")[0].as<bool>());
}

TEST_F(ReferenceEvaluatorTest, ChecksWhatIsTakenOutOfCells) {
  const char* text = R"(
    fn @main(%xs: list[tensor[n; f32]], %x: tensor[n; f32]) -> tensor[n; f32] {
      match %xs {
        Cons(%y, _) => { add(%x, %y) }
        Nil => { %x }
      }
    })";
  const Any nil = CellObj::of(0, std::span<const Any>());
  const Any fields[] = {Any(floats({2}, {1, 2})), nil};
  const Any xs = CellObj::of(1, fields);
  EXPECT_EQ(values_of(run(text, {xs, floats({2}, {1, 1})})[0]), (std::vector<float>{2, 3}));
  EXPECT_EQ(values_of(run(text, {nil, floats({1}, {1})})[0]), (std::vector<float>{1}));
  EXPECT_THAT(error_of(text, {xs, floats({3}, {1, 1, 1})}),
              testing::HasSubstr("the field 'y' doesn't fit its type"));
  EXPECT_THAT(error_of(text, {Any(int64_t{3}), floats({1}, {1})}),
              testing::HasSubstr("input 'xs' does not fit"));
  const Any other = CellObj::of(7, std::span<const Any>());
  EXPECT_THAT(error_of(text, {other, floats({1}, {1})}),
              testing::HasSubstr("no arm of match takes the value"));
}

TEST_F(ReferenceEvaluatorTest, AnErrorStandsAtTheInnermostBinding) {
  const char* text = R"(
    fn @divide(%a: i64, %b: i64) -> i64 {
      %small = less(%b, 10)
      %c = if %small {
        %q = div(%a, %b)
        %q
      } else { %a }
      %c
    }
    fn @main(%a: i64, %b: i64) -> i64 {
      %r = @divide(%a, %b)
      %r
    })";
  EXPECT_EQ(error_of(text, {Any(int64_t{1}), Any(int64_t{0})}),
            "error: test.tn:5:9: integer division by zero\n"
            "  at divide at test.tn:5:9\n"
            "  at main at test.tn:11:7");
  // The evaluator goes on after an error.
  EXPECT_EQ(run(text, {Any(int64_t{6}), Any(int64_t{3})})[0].as<int64_t>(), 2);
}

TEST_F(ReferenceEvaluatorTest, LoopsTakeManyTurnsAndNone) {
  const char* text = R"(
    fn @main(%n: i64) -> (i64, i64) {
      loop (%i: i64 = 0, %sum: i64 = 1) while { less(%i, %n) } {
        %early = less(%i, 10)
        %s = if %early { add(%sum, %i) } else { %sum }
        %j = add(%i, 1)
        (%j, %s)
      }
    })";
  const std::vector<Any> many = run(text, {Any(int64_t{200'000})});
  EXPECT_EQ(many[0].as<int64_t>(), 200'000);
  EXPECT_EQ(many[1].as<int64_t>(), 46);
  const std::vector<Any> none = run(text, {Any(int64_t{0})});
  EXPECT_EQ(none[0].as<int64_t>(), 0);
  EXPECT_EQ(none[1].as<int64_t>(), 1);
}

// A composite operator is planned once for all shapes.
TEST_F(ReferenceEvaluatorTest, AnExpandedOperatorIsCompiledForAllShapes) {
  const char* text = R"(
    fn @main(%x: tensor[n; f32], %z: tensor[2 * n; f32], %k: i64) -> tensor[rank=1; f32] {
      %p = dynamic_quantize_linear(%z)
      %r = loop (%i: i64 = 0, %v: tensor[rank=1; f32] = %x) while { less(%i, %k) } {
        %u = match_shape(%v, [d])
        %q = dynamic_quantize_linear(%u)
        %w = concat(%u, %u, axis=0)
        %j = add(%i, 1)
        (%j, %w)
      }
      %r.1
    })";
  const Tensor x = floats({2}, {1, 2}), z = floats({4}, {1, 2, 3, 4});
  run(text, {x, z, Any(int64_t{1})});
  const size_t kernels = evaluator_.kernels().size();
  EXPECT_EQ(run(text, {x, z, Any(int64_t{5})})[0].as<Tensor>().dim(0), 64);
  EXPECT_EQ(evaluator_.kernels().size(), kernels);
}

TEST_F(ReferenceEvaluatorTest, AKernelMayNeedWorkspaceOfNoBytes) {
  const char* text = R"(
    kernel @copy(%x: tensor[n; f32]) -> (%y: tensor[n; f32]) {
      scratch %s: tensor[100000 * n; f32]
      for %i from 0 count dim(n) {
        %s[%i] = %x[%i]
        %y[%i] = %s[%i]
      }
    }
    fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { kernel @copy(%x) })";
  EXPECT_EQ(run(text, {floats({0}, {})})[0].as<Tensor>().count(), 0);
  EXPECT_EQ(values_of(run(text, {floats({2}, {3, 4})})[0]), (std::vector<float>{3, 4}));
}

TEST_F(ReferenceEvaluatorTest, ErrorsOfOperatorsNameThem) {
  const char* text = R"(
    fn @main(%x: tensor[n; f32], %i: tensor[i64]) -> tensor[f32] {
      %y = gather(%x, %i, axis=0)
      %y
    })";
  const Tensor index = Tensor::copy_of<int64_t>({}, i64, std::vector<int64_t>{7});
  EXPECT_EQ(error_of(text, {floats({2}, {1, 2}), index}),
            "error: test.tn:3:7: kernel 'gather': an index is out of range\n"
            "  found     7\n"
            "  expected  from -2 to 1\n"
            "  at main at test.tn:3:7");
}

TEST_F(ReferenceEvaluatorTest, RefusesAnInputOfAnotherShape) {
  const char* text = R"(
    fn @main(%x: tensor[n, n; f32]) -> tensor[n, n; f32] { %y = neg(%x)  %y })";
  EXPECT_EQ(error_of(text, {floats({1, 2}, {1, 2})}),
            "error: input 'x' does not fit\n"
            "  expected  tensor[n, n=1; f32]\n"
            "  found     tensor[1, 2; f32]   axis 1");
  EXPECT_EQ(error_of(text, {floats({2}, {1, 2})}),
            "error: input 'x' does not fit\n"
            "  expected  tensor[n, n; f32]\n"
            "  found     tensor[2; f32]");
}

// An arm that is not taken, and a function that is not called, cost no compilation.
TEST_F(ReferenceEvaluatorTest, PreparesWhatARunReaches) {
  const char* text = R"(
    fn @other(%x: tensor[n; f32]) -> tensor[n; f32] { %y = cosh(%x)  %y }
    fn @main(%x: tensor[n; f32], %c: bool) -> tensor[n; f32] {
      %y = if %c { %a = acosh(%x)  %b = @other(%a)  %b } else { %a = atanh(%x)  %a }
      %y
    })";
  ReferenceEvaluator evaluator{codegen::baseline_target()};
  const Module module = parse_module(text, "test.tn");
  const auto run_arm = [&](bool arm) {
    evaluator.run(module, *module->functions.find("main"), {floats({1}, {0}), Any(arm)});
    return evaluator.kernels().size();
  };
  EXPECT_EQ(run_arm(false), 1u);
  EXPECT_EQ(run_arm(false), 1u);
  EXPECT_EQ(run_arm(true), 3u);
}

TEST_F(ReferenceEvaluatorTest, ComputesTheSameInEachMode) {
  const char* text = R"(
    fn @main(%x: tensor[n, m; f32]) -> tensor[n; f32] {
      %a = softmax(%x, axis=1)
      %b = mul(%a, %x)
      %c = reduce_sum(%b, axes=[1])
      %c
    })";
  const Module module = parse_module(text, "test.tn");
  const Tensor x = floats({2, 3}, {1, -2, 3, 0.5, 0.25, -1});
  for (KernelMode mode : {KernelMode::kScheduled, KernelMode::kPlain, KernelMode::kWalked}) {
    ReferenceEvaluator evaluator{codegen::baseline_target(), mode};
    const auto found = evaluator.run(module, *module->functions.find("main"), {x});
    const std::vector<float> values = values_of(found[0]);
    ASSERT_EQ(values.size(), 2u);
    EXPECT_NEAR(values[0], 2.7335, 1e-3);
    EXPECT_NEAR(values[1], 0.2356, 1e-3);
  }
}

// A size that no operand has.
TEST_F(ReferenceEvaluatorTest, ComputesResultsOfStatedSizesInEachMode) {
  const Module module = parse_module(R"(
    fn @main(%x: tensor[n, m; f32]) -> tensor[m; i64] { full(tensor[i64]{7}, shape=[m]) })",
                                     "test.tn");
  for (KernelMode mode : {KernelMode::kScheduled, KernelMode::kPlain, KernelMode::kWalked}) {
    ReferenceEvaluator evaluator{codegen::baseline_target(), mode};
    const auto found =
        evaluator.run(module, *module->functions.find("main"), {floats({1, 2}, {0, 0})});
    const auto y = found[0].as<Tensor>();
    ASSERT_EQ(y.count(), 2);
    EXPECT_EQ(y.data_as<int64_t>()[1], 7);
  }
}

TEST_F(ReferenceEvaluatorTest, ComputesFloatingScalarsInTheirType) {
  const char* text = R"(
    fn @main(%x: f32, %n: i64) -> (f32, bool) {
      %m = cast(%n, dtype=f32)
      %y = add(%x, %m)
      %z = less(%y, %x)
      (%y, %z)
    })";
  const std::vector<Any> found = run(text, {Any(0.5), Any(int64_t{1} << 24)});
  EXPECT_EQ(found[0].as<double>(), 16777216.0);  // 2^24 + 0.5 rounded to f32
  EXPECT_FALSE(found[1].as<bool>());
}

TEST_F(ReferenceEvaluatorTest, ErrorsHaveTheActiveFunctions) {
  const char* text = R"(fn @main(%n: i64) -> i64 {
  %r = @down(%n)
  add(%r, 1)
}
fn @down(%n: i64) -> i64 {
  %is_last = equal(%n, 0)
  if %is_last {
    %q = div(1, %n)
    add(%q, 1)
  } else {
    %m = sub(%n, 1)
    %r = @down(%m)
    add(%r, 1)
  }
})";
  const std::string found = error_of(text, {Any(int64_t{9})});
  EXPECT_THAT(found, testing::EndsWith("\n  at down at test.tn:8:5\n"
                                       "  at down at test.tn:12:5\n"
                                       "  at the frame above, repeated 8 times\n"
                                       "  at main at test.tn:2:3"));
}

}  // namespace
}  // namespace tenon::graph

#include "graph/evaluate/reference_evaluator.h"

#include <gtest/gtest.h>

#include "graph/ir/module.h"
#include "graph/ir/text.h"
#include "graph/op/register.h"
#include "loop/types.h"

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

// Kernel objects of earlier runs stay open: a later one must not be taken for one of them.
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

TEST_F(ReferenceEvaluatorTest, RefusesAnInputOfAnotherShape) {
  const char* text = R"(
    fn @main(%x: tensor[n, n; f32]) -> tensor[n, n; f32] { %y = neg(%x)  %y })";
  try {
    run(text, {floats({1, 2}, {1, 2})});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.render().find("input 'x', axis 1: found 2, expected n = 1"), std::string::npos)
        << error.render();
  }
}

TEST_F(ReferenceEvaluatorTest, RefusesWhatThisVersionDoesNotRun) {
  auto error_of = [&](const char* text, const std::vector<Any>& args) {
    try {
      run(text, args);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
      return error.message();
    }
    return std::string("no error");
  };
  const Any one(int64_t{1}), half(0.5);
  const std::string data =
      "match, constructors and function literals are parsed and checked, but not run by this "
      "version";
  EXPECT_EQ(error_of("fn @main(%k: i64) -> option[i64] { %s = Some(%k)  %s }", {one}), data);
  EXPECT_EQ(error_of(R"(fn @main(%o: option[i64]) -> i64 {
                          match %o { None => { 0 } Some(%x) => { %x } }
                        })",
                     {one}),
            data);
  EXPECT_EQ(error_of(R"(fn @main(%k: i64) -> i64 {
                          %f = fn(%x: i64) -> i64 { mul(%x, %k) }
                          %y = %f(%k)
                          %y
                        })",
                     {one}),
            data);
  EXPECT_EQ(error_of("fn @main(%f: fn(i64) -> i64) -> i64 { %y = %f(1)  %y }", {one}),
            "the evaluator does not call closures");
  EXPECT_EQ(error_of("fn @main(%x: f32) -> f32 { %y = neg(%x)  %y }", {half}),
            "neg of floating scalars is parsed and checked, but not run by this version");
  EXPECT_EQ(error_of("fn @main(%x: f64) -> bool { %y = less(%x, %x)  %y }", {half}),
            "less of floating scalars is parsed and checked, but not run by this version");
  EXPECT_EQ(error_of("fn @main(%n: i64) -> f32 { %y = cast(%n, dtype=f32)  %y }", {one}),
            "cast of floating scalars is parsed and checked, but not run by this version");
}

}  // namespace
}  // namespace tenon::graph

// Random graphs for a fixed number of seeds; `graph_programs` can run forever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "check_program.h"
#include "driver/compile.h"
#include "graph/ir/text.h"
#include "graph/ir/walk.h"
#include "graph_program.h"
#include "range_program.h"
#include "value_program.h"

namespace tenon::random_programs {
namespace {

class GraphPrograms : public testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { driver::initialise(); }

  void check(uint64_t first, uint64_t last, const Checks& checks) {
    for (uint64_t seed = first; seed < last; ++seed) {
      SCOPED_TRACE(cat("seed ", seed, GetParam() ? " symbolic" : ""));
      const graph::Module module = graph_program(seed, GetParam());
      const std::string found = find_difference(module, seed, checks);
      ASSERT_EQ(found, "") << "in\n" << graph::to_text(module);
    }
  }
};

// Programs mean the same after each pass.
TEST_P(GraphPrograms, KeepTheirMeaningInEveryPass) {
  check(0, 60, {.passes = true, .machine = false, .levels = {0, 2}});
}

TEST_P(GraphPrograms, ComputeTheSameOnTheMachine) {
  check(100, 110, {.passes = false, .machine = true, .levels = {0, 1, 2, 3}});
}

INSTANTIATE_TEST_SUITE_P(Sizes, GraphPrograms, testing::Bool(),
                         [](const auto& info) { return info.param ? "Symbolic" : "Static"; });

// Rewrites keep the digits and the range that the definition has.
TEST(RangePrograms, ComputeTheSame) {
  driver::initialise();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const RangeProgram program = range_program(seed);
    ASSERT_EQ(find_difference(program), "") << "seed " << seed << " in\n"
                                            << graph::to_text(program.module);
  }
}

// The generator makes programs with branches, loops, calls and sizes known only at run time, of 5
// operators and more.
TEST(GraphProgram, MakesEveryConstruct) {
  driver::initialise();
  int branches = 0, loops = 0, calls = 0, matches = 0, small = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const graph::Module module = graph_program(seed, seed % 2 == 0);
    const std::string text = graph::to_text(module);
    branches += text.find("if %") != std::string::npos;
    loops += text.find("loop ") != std::string::npos;
    calls += text.find("@helper_0(%") != std::string::npos;
    matches += text.find("match_shape") != std::string::npos;
    small += (*module->functions.find("main"))->body->bindings.size() < 5;
  }
  EXPECT_GT(branches, 20);
  EXPECT_GT(loops, 20);
  EXPECT_GT(calls, 20);
  EXPECT_GT(matches, 5);
  EXPECT_LT(small, 5);
}

// Programs of values mean the same printed and read again, after each pass, as bytecode and
// compiled; `value_programs` checks more of them.
TEST(ValueProgram, MeansTheSameInEveryWay) {
  driver::initialise();
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::string text = value_program(seed);
    ASSERT_EQ(find_difference(text, seed, kValueChecks), "") << "seed " << seed << " in\n" << text;
  }
}

// Programs that failed once, and that the maker no longer makes. A file is named after its seed.
TEST(ValueProgram, FindingsStayMended) {
  driver::initialise();
  for (const auto& entry : std::filesystem::directory_iterator("test/random/findings")) {
    SCOPED_TRACE(entry.path().string());
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const uint64_t seed = std::stoull(entry.path().stem());
    EXPECT_EQ(find_difference(text.str(), seed, kValueChecks), "");
  }
}

TEST(ValueProgram, MakesEveryConstruct) {
  std::string all;
  for (uint64_t seed = 0; seed < 300; ++seed) all += value_program(seed);
  for (const char* construct :
       {"[T, U] {",   " = match (", " = loop (",    " = if ",        "= fn(",
        "= @f",       "closure @f", "array_push(",  "array_concat(", "string_concat(",
        "@compose(",  "(_, ",       "true =>",      "(Some(%",       "cast(",
        "= Nil\n",    "= Nil[",     "u64(",         "f16(",          "floor_div(",
        "to_scalar(", "to_tensor(", "match_shape(", "size(n)",       "n*3",
        "size_of(%",  "nonzero(",   "matmul(",      "list[tensor[",  "fn(tensor[n",
        "@f0(",       "@unsized_"}) {
    EXPECT_NE(all.find(construct), std::string::npos) << construct;
  }
}

// The check finds a wrong result.
TEST(CheckProgram, FindsAProgramThatTheEvaluatorsDisagreeAbout) {
  driver::initialise();
  // At -O3 a library may lose NaN after a ReLU; Tenon's own kernels don't.
  const graph::Module module = graph::parse_module(R"(
    fn @main(%x: tensor[16, 512; f32], %w: tensor[512, 64; f32]) -> tensor[16, 64; f32] {
      %0 = log(%x)
      %1 = matmul(%0, %w)
      %2 = relu(%1)
      %2
    })",
                                                   "nan.tn");
  const auto inputs = random_inputs(**module->functions.find("main"), 1, false);
  EXPECT_EQ(find_difference(module, inputs, {.passes = false, .levels = {2}}), "");
  EXPECT_THAT(find_difference(module, inputs, {.passes = false, .levels = {3}}),
              testing::StartsWith("-O3 with libraries, on the machine: result 0: element"));
}

}  // namespace
}  // namespace tenon::random_programs

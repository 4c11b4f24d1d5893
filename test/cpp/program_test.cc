// Programs.
#include "test_program.h"

#include <fstream>

namespace {

using namespace tenon;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(CppProgram, DescribesItsFunctions) {
  EXPECT_THAT(program().functions(), ElementsAre("main", "weights", "twice", "spin", "adder",
                                                 "nested", "made", "same", "label", "list"));
  const Signature s = program().signature();
  EXPECT_EQ(s.text(),
            "(x: tensor[batch, 3; f32], n: i64) -> (same: tensor[batch, 3; f32], next: i64)");
  ASSERT_EQ(s.params.size(), 2u);
  EXPECT_EQ(s.params[0].kind, TENON_TENSOR);
  EXPECT_EQ(s.params[0].dtype.bits, 32);
  ASSERT_TRUE(s.params[0].dims);
  EXPECT_EQ(s.params[0].dims->at(0).text, "batch");
  EXPECT_EQ(s.params[0].dims->at(0).size, -1);
  EXPECT_EQ(s.params[0].dims->at(1).size, 3);
  EXPECT_FALSE(s.params[1].dims);
  EXPECT_THAT(caught<UsageError>([] { program().signature("mian"); }), HasSubstr("mian"));
}

TEST(CppProgram, IsCalled) {
  const auto [same, next] = program()(row(), 41).as<std::tuple<Tensor, int64_t>>();
  EXPECT_THAT(same.view<float>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(next, 42);
  EXPECT_EQ(program()["twice"](4).as<int>(), 8);
  EXPECT_EQ(program().module()["twice"](5).as<int>(), 10);
  EXPECT_THROW(program()["hidden"], UsageError);
}

TEST(CppProgram, RefusesAnArgumentThatDoesNotFit) {
  const std::string text = caught<UsageError>([] {
    program()(Tensor::zeros({1, 4}, dtype_of<float>), 1);
  });
  EXPECT_THAT(text, HasSubstr("expected  tensor[batch, 3; f32]"));
}

TEST(CppProgram, ItsConstantsAreReadOnly) {
  auto weights = program()["weights"]().as<Tensor>();
  EXPECT_TRUE(weights.is_constant());
  EXPECT_THROW(weights.mutable_view<float>(), UsageError);
}

TEST(CppProgram, GivesItsFileAndIsLoadedFromIt) {
  const Program again = Program::from_bytes(program().file());
  EXPECT_EQ(again["twice"](1).as<int>(), 2);
  const std::string path = TENON_TEST_FOLDER "/written.tnx";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(program().file().data()),
             static_cast<std::streamsize>(program().file().size()));
  EXPECT_EQ(Program::load(path)["twice"](1).as<int>(), 2);
}

TEST(CppProgram, LoadsUnderOptions) {
  program();  // registers the host's functions
  const Module host("host", {{"host.twice", [](int64_t n) { return 20 * n; }}});
  LoadOptions options;
  options.modules = {host};
  options.deadline = 10s;
  options.weights = {{"unused", row()}};
  const Program other = Program::load(TENON_TEST_PROGRAM, options);
  EXPECT_EQ(other["twice"](1).as<int>(), 20);
  EXPECT_THROW(Program::load(TENON_TEST_PROGRAM, {.memory = 1}), ExecutionError);
  // host.twice isn't registered for files.
  EXPECT_THAT(caught<Error>([] { Program::load(TENON_TEST_PROGRAM, {.untrusted = true}); }),
              HasSubstr("host.twice"));
  EXPECT_THROW(Program::load("/nowhere/a.tnx"), Error);
}

TEST(CppProgram, FunctionsObeyLimitsAndCancel) {
  EXPECT_THAT(caught<ExecutionError>([] { program().function("spin", {.fuel = 1000})(); }),
              HasSubstr("fuel"));
  const Function spin = program().function("spin", {.deadline = 10s});
  std::atomic<bool> ended = false;
  std::thread other([&] {
    while (!ended) spin.cancel();
  });
  EXPECT_THAT(caught<ExecutionError>([&] { spin(); }), HasSubstr("cancel"));
  ended = true;
  other.join();
}

TEST(CppProgram, AHostsExceptionPassesThrough) {
  EXPECT_EQ(caught<std::domain_error>([] { program()["twice"](13); }), "not 13");
}

}  // namespace

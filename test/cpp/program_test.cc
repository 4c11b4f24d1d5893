// Programs and machines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tenon/tenon.h"

namespace {

using namespace tenon;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

template <class E, class F>
std::string caught(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

const Program& program() {
  static const Program loaded = [] {
    register_function("host.twice", [](int64_t n) {
      if (n == 13) throw std::domain_error("not 13");
      return 2 * n;
    });
    return Program::load(TENON_TEST_PROGRAM);
  }();
  return loaded;
}
Tensor row() {
  return Tensor::copy({1.0f, 2.0f, 3.0f}, {1, 3});
}

TEST(CppProgram, DescribesItsFunctions) {
  EXPECT_THAT(program().functions(),
              ElementsAre("main", "weights", "twice", "spin", "adder", "nested"));
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
  const std::string path = TENON_TEST_FOLDER "/saved.tnx";
  program().save(path);
  EXPECT_EQ(Program::load(path)["twice"](1).as<int>(), 2);
  EXPECT_THAT(caught<ExecutionError>([] { program().save("/nowhere/a.tnx"); }),
              HasSubstr("can't write"));
}

TEST(CppProgram, LoadsUnderOptions) {
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

TEST(CppMachine, CallsByNameAndReturnsFunctions) {
  Machine machine(program());
  EXPECT_EQ(machine.call("twice", 4).as<int>(), 8);
  EXPECT_EQ(machine["twice"](5).as<int>(), 10);
  const auto adder = machine["adder"](40).as<Function>();
  EXPECT_EQ(adder(2).as<int>(), 42);
  const std::vector<Value> one_vector{Value(1)};
  EXPECT_THROW(machine.call("twice", one_vector), UsageError);
}

TEST(CppMachine, ObeysItsLimits) {
  Machine machine(program(), {.deadline = 5ms});
  EXPECT_THAT(caught<ExecutionError>([&] { machine["spin"](); }), HasSubstr("deadline"));
  machine.set_limits({.fuel = 10});
  EXPECT_THAT(caught<ExecutionError>([&] { machine["spin"](); }), HasSubstr("fuel"));
  EXPECT_EQ(machine["twice"](1).as<int>(), 2);
  EXPECT_THROW(machine.set_limits({.fuel = -2}), UsageError);
}

TEST(CppMachine, SubmitsToAnotherThreadAndIsCancelled) {
  Machine machine(program(), {.deadline = 10s});
  EXPECT_EQ(machine.submit("twice", 4).get().as<int>(), 8);
  std::future<Value> spinning = machine.submit("spin");
  while (spinning.wait_for(1ms) != std::future_status::ready) machine.cancel();
  EXPECT_THAT(caught<ExecutionError>([&] { spinning.get(); }), HasSubstr("cancel"));
}

TEST(CppMachine, EverySubmissionOfAProgramHasAMachine) {
  std::vector<std::future<Value>> results;
  for (int i = 0; i < 8; ++i) results.push_back(submit(program(), "twice", i));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(results[static_cast<size_t>(i)].get().as<int>(), 2 * i);
}

TEST(CppMachine, KeepsInputsAndOutputs) {
  Machine machine(program());
  EXPECT_THAT(caught<UsageError>([&] { machine.invoke_stateful("main"); }), HasSubstr("set_input"));
  machine.set_input("main", row(), 1);
  EXPECT_THAT(caught<UsageError>([&] { machine.get_outputs("main"); }),
              HasSubstr("invoke_stateful"));
  machine.invoke_stateful("main");
  EXPECT_EQ(machine.get_outputs("main", {1}).as<int>(), 2);
  EXPECT_EQ(machine.get_output("main", "next").as<int>(), 2);
  EXPECT_THAT(caught<UsageError>([&] { machine.get_output("main", "last"); }),
              HasSubstr("same, next"));
  EXPECT_THROW(machine.get_outputs("main", {2}), UsageError);
  machine.set_inputs("main", {{"n", 5}, {"x", row()}});
  machine.invoke_stateful("main");
  EXPECT_EQ(machine.get_outputs("main").as<Array>()[1].as<int>(), 6);
  machine.set_input("nested");
  machine.invoke_stateful("nested");
  EXPECT_EQ(machine.get_outputs("nested", {0, 1}).as<int>(), 2);
  machine.set_input("twice", 3);
  machine.invoke_stateful("twice");
  EXPECT_EQ(machine.get_outputs("twice").as<int>(), 6);
}

TEST(CppMachine, RefusesInputsThatDoNotFit) {
  Machine machine(program());
  EXPECT_THAT(caught<UsageError>([&] { machine.set_input("main", row()); }), HasSubstr("n: i64"));
  EXPECT_THAT(caught<UsageError>([&] {
                machine.set_inputs("main", {{"n", 1}, {"y", 2}});
              }),
              HasSubstr("n: i64"));
  EXPECT_THROW(machine.set_input("mian"), UsageError);
}

TEST(CppMachine, SavesAFunctionWithItsArguments) {
  Machine machine(program());
  machine.save_function("twice", "six", 3);
  EXPECT_EQ(machine["six"]().as<int>(), 6);
  EXPECT_THAT(caught<UsageError>([&] { machine.save_function("twice", "main", 3); }),
              HasSubstr("choose another name"));
  EXPECT_THROW(machine.save_function("thrice", "nine", 3), UsageError);
}

TEST(CppMachine, TimesCalls) {
  Machine machine(program());
  const BenchmarkResult r =
      machine.time_evaluator("twice", {.number = 2, .repeat = 3, .min_repeat = 1ms})(4);
  ASSERT_EQ(r.seconds.size(), 3u);
  EXPECT_GT(r.min(), 0);
  EXPECT_LE(r.min(), r.median());
  EXPECT_LE(r.median(), r.max());
  EXPECT_LE(r.min(), r.mean());
  EXPECT_THROW(machine.time_evaluator("twice", {.number = 0}), UsageError);
  EXPECT_THROW(machine.time_evaluator("thrice")(4), UsageError);
}

TEST(CppMachine, StatisticsAreThoseOfTheirDefinitions) {
  const BenchmarkResult even{{4, 1, 3, 2}};
  EXPECT_EQ(even.median(), 2.5);
  EXPECT_EQ(even.mean(), 2.5);
  EXPECT_DOUBLE_EQ(even.deviation(), std::sqrt(1.25));
  EXPECT_EQ((BenchmarkResult{{3, 1, 2}}.median()), 2);
}

}  // namespace

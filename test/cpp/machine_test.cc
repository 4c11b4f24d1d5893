// Machines.
#include "test_program.h"

namespace {

using namespace tenon;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(CppMachine, CallsByNameAndReturnsFunctions) {
  Machine machine(program());
  EXPECT_EQ(machine.call("twice", 4).as<int>(), 8);
  EXPECT_EQ(machine["twice"](5).as<int>(), 10);
  const auto adder = machine["adder"](40).as<Function>();
  EXPECT_EQ(adder(2).as<int>(), 42);
  const std::vector<Value> one_vector{Value(1)};
  EXPECT_THROW(machine.call("twice", one_vector), UsageError);
}

TEST(CppMachine, ItsFunctionsAreFunctions) {
  Function twice, six;
  {
    Machine machine(program());
    auto named = machine["twice"];
    twice = named;
    machine.save_function("twice", "six", 3);
    six = machine["six"];
    EXPECT_THROW(twice = machine["thrice"], UsageError);
  }
  EXPECT_EQ(twice(5).as<int>(), 10);  // they keep what they need of the machine
  EXPECT_EQ(six().as<int>(), 6);
}

TEST(CppMachine, ObeysItsLimits) {
  Machine machine(program(), {.deadline = 5ms});
  EXPECT_THAT(caught<ExecutionError>([&] { machine["spin"](); }), HasSubstr("deadline"));
  machine.set_limits({.fuel = 10});
  EXPECT_THAT(caught<ExecutionError>([&] { machine["spin"](); }), HasSubstr("fuel"));
  try {
    machine["spin"]();
  } catch (const ExecutionError& e) {
    EXPECT_EQ(e.stopped_by(), "fuel");
    EXPECT_THAT(e.what(), Not(HasSubstr("stopped_by")));
  }
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

TEST(CppMachine, CallsAFunctionValueUnderItsLimits) {
  Machine machine(program(), {.fuel = 1000});
  EXPECT_EQ(machine.call(program()["twice"], 4).as<int>(), 8);
  EXPECT_THAT(caught<ExecutionError>([&] { machine.call(program()["spin"]); }), HasSubstr("fuel"));
  EXPECT_THROW(machine.call(Function([] {})), UsageError);
}

TEST(CppMachine, BindsArgumentsToAFunction) {
  const Function main_of_row = program()["main"].bind(row());
  EXPECT_EQ(main_of_row(4).as<Array>()[1].as<int>(), 5);
}

TEST(CppMachine, WritesResultsIntoTensorsOfTheCaller) {
  Machine machine(program());
  const Tensor out = Tensor::zeros({3}, dtype_of<float>);
  const auto given = machine.call_into("made", {out}, 3).as<Tensor>();
  EXPECT_EQ(given.dl().data, out.dl().data);
  EXPECT_THAT(out.view<float>(), ElementsAre(7, 7, 7));
  EXPECT_EQ(program()["made"].call_into({out}, 3).as<Tensor>().dl().data, out.dl().data);
  EXPECT_EQ(machine.call_into("made", {nullptr}, 2).as<Tensor>().size(), 2u);
  EXPECT_THROW(machine.call_into("made", {out}, 4), UsageError);
}

TEST(CppMachine, CountsItsMemoryAndReturnsIt) {
  Machine machine(program());
  EXPECT_EQ(machine.memory().memory, Memory::pooled);
  machine["made"](1000);
  EXPECT_GE(machine.memory().pooled, 4000);
  EXPECT_GE(machine.memory().peak, machine.memory().allocated);
  EXPECT_EQ(machine.memory().allocations, 1);
  machine.trim();
  EXPECT_EQ(machine.memory().allocated, 0);
  Machine naive(program(), {}, Memory::naive);
  naive["made"](1000);
  EXPECT_EQ(naive.memory().memory, Memory::naive);
  EXPECT_EQ(naive.memory().allocated, 0);
}

TEST(CppMachine, ShowsAnInstrumentEveryCall) {
  Machine machine(program());
  std::vector<std::string> seen;
  machine.set_instrument([&](const CallEvent& event) {
    EXPECT_EQ(event.kind(), CallKind::packed);
    EXPECT_EQ(event.function().type_key(), "function");
    seen.push_back((event.before() ? "before " : "after ") + std::string(event.caller()) + " " +
                   std::string(event.name()) + " " + event.arguments()[0].repr() + " " +
                   event.result().repr());
  });
  EXPECT_EQ(machine["twice"](4).as<int>(), 8);
  EXPECT_THAT(seen, ElementsAre("before twice host.twice 4 None", "after twice host.twice 4 8"));
  machine.remove_instrument();
  machine["twice"](4);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(CppMachine, LetsAnInstrumentSkipACallAndFail) {
  Machine machine(program());
  machine.set_instrument([](const CallEvent& event) {
    if (event.arguments()[0] == Value(5)) throw std::range_error("not 5");
    event.set_result(100);
    return Action::skip;
  });
  EXPECT_EQ(machine["twice"](4).as<int>(), 100);
  EXPECT_EQ(caught<std::range_error>([&] { machine["twice"](5); }), "not 5");
}

}  // namespace

#include "loop/recurrence.h"

#include <gtest/gtest.h>

#include "loop/schedule.h"
#include "loop/tensors_testing.h"
#include "loop/types.h"
#include "object/reflect.h"
#include "support/error_testing.h"

namespace tenon::loop {
namespace {

const Dim n = Dim::symbol("n"), t = Dim::symbol("t");

// h becomes h * w + x[turn] + 1: its input, the counter and the state are inputs 0, 1 and 2.
struct Step {
  Ref<const Buffer> x = buffer("x", f32, {t, n}), turn = buffer("turn", i64, {}),
                    h = buffer("h", f32, {n}), w = buffer("w", f32, {n}), y = buffer("y", f32, {n});
  ComputeRef compute = compute_of(
      {x, turn, h, w},
      {map_stage(y,
                 [&](const Indices& i) {
                   return at(h, i) * at(w, i) + at(x, {at(turn, {}), i[0]}) + literal(f32, 1);
                 })},
      {y});
  RecurrenceRef repeated() const { return recurrence(compute, t, 1, {{2, 0}}, {0}); }
};

std::vector<Tensor> run(const Recurrence& r, const std::vector<Tensor>& inputs,
                        ScheduleLevel level) {
  ScheduleOptions options;
  options.level = level;
  Symbols symbols;
  symbols["t"] = inputs[0].dim(0);
  symbols["n"] = inputs[0].dim(1);
  return evaluate(*lower(r, "turns", options), inputs, symbols);
}

TEST(Recurrence, HasTheParametersThatFollow) {
  const RecurrenceRef r = Step().repeated();
  ASSERT_EQ(r->inputs.size(), 3u);
  ASSERT_EQ(r->outputs.size(), 2u);
  EXPECT_EQ(r->outputs[0]->shape.to_vector(), std::vector<Dim>{n});
  EXPECT_EQ(r->outputs[1]->shape.to_vector(), (std::vector<Dim>{t, n}));
  EXPECT_TRUE(r->integers.empty());
  EXPECT_TRUE(r->in_bounds);
  check(*r);
}

TEST(Recurrence, PassesTheStateOnAndKeepsTheRows) {
  std::mt19937 rng(1);
  for (const int64_t turns : {0, 1, 3}) {
    for (const ScheduleLevel level : {ScheduleLevel::kPlain, ScheduleLevel::kShaped}) {
      const Tensor x = random_tensor(f32, {turns, 5}, &rng), h = random_tensor(f32, {5}, &rng),
                   w = random_tensor(f32, {5}, &rng);
      const std::vector<Tensor> found = run(*Step().repeated(), {x, h, w}, level);
      std::vector<float> state(h.data_as<float>(), h.data_as<float>() + 5);
      for (int64_t i = 0; i < turns; ++i) {
        for (int64_t j = 0; j < 5; ++j) {
          float& s = state[static_cast<size_t>(j)];
          s = s * w.data_as<float>()[j] + x.data_as<float>()[5 * i + j] + 1;
          EXPECT_NEAR(found[1].data_as<float>()[5 * i + j], s, 1e-4);
        }
      }
      for (int64_t j = 0; j < 5; ++j) {
        EXPECT_NEAR(found[0].data_as<float>()[j], state[static_cast<size_t>(j)], 1e-4);
      }
    }
  }
}

// Two states that swap, of which neither may be overwritten before both are read.
TEST(Recurrence, StatesChangeAtOnce) {
  auto a = buffer("a", f32, {4}), b = buffer("b", f32, {4}), next_a = buffer("next_a", f32, {4}),
       next_b = buffer("next_b", f32, {4});
  const ComputeRef step =
      compute_of({a, b},
                 {map_stage(next_a, [&](const Indices& i) { return at(b, i); }),
                  map_stage(next_b, [&](const Indices& i) { return at(a, i) + literal(f32, 1); })},
                 {next_a, next_b});
  const RecurrenceRef r =
      recurrence(step, 3, Recurrence::kNoCounter, {{0, 0}, {1, 1}}, Array<int64_t>{});
  std::mt19937 rng(2);
  const Tensor x = random_tensor(f32, {4}, &rng), y = random_tensor(f32, {4}, &rng);
  for (const ScheduleLevel level : {ScheduleLevel::kPlain, ScheduleLevel::kShaped}) {
    ScheduleOptions options;
    options.level = level;
    const std::vector<Tensor> found = evaluate(*lower(*r, "swap", options), {x, y}, {});
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(found[0].data_as<float>()[i], y.data_as<float>()[i] + 1);
      EXPECT_EQ(found[1].data_as<float>()[i], x.data_as<float>()[i] + 1 + 1);
    }
  }
}

TEST(Recurrence, EqualOnesAreEqual) {
  register_loop_types();
  const RecurrenceRef a = Step().repeated(), b = Step().repeated();
  EXPECT_TRUE(structural_equal(Any(a), Any(b)));
  EXPECT_EQ(structural_hash(Any(a)), structural_hash(Any(b)));
  const RecurrenceRef other = recurrence(Step().compute, 7, 1, {{2, 0}}, {0});
  EXPECT_FALSE(structural_equal(Any(a), Any(other)));
}

std::string rule_of(const ComputeRef& step, const Dim& trip_count, int64_t counter,
                    Array<State> states, Array<int64_t> rows) {
  try {
    recurrence(step, trip_count, counter, std::move(states), std::move(rows));
  } catch (const Error& e) {
    for (const Error::Row& row : e.rows()) {
      if (row.label == "rule") return row.text;
    }
  }
  return "";
}

TEST(Recurrence, BreaksNoRule) {
  const ComputeRef step = Step().compute;
  EXPECT_EQ(rule_of(step, -1, 1, {{2, 0}}, {0}), "the trip count isn't negative");
  EXPECT_EQ(rule_of(step, t, 4, {{2, 0}}, {0}), "the counter is an input of the step");
  EXPECT_EQ(rule_of(step, t, 0, {{2, 0}}, {0}), "the counter is an i64 of rank 0");
  EXPECT_EQ(rule_of(step, t, 1, {{2, 1}}, {0}),
            "a state is an input of the step, and then an output");
  EXPECT_EQ(rule_of(step, t, 1, {{2, 0}, {2, 0}}, {}), "an input is one state, or the counter");
  EXPECT_EQ(rule_of(step, t, 1, {{0, 0}}, {}), "a state keeps its type");
  EXPECT_EQ(rule_of(step, t, 1, {{2, 0}}, {0, 0}), "rows are distinct outputs of the step");
  EXPECT_EQ(rule_of(step, t, 1, {}, {}), "every output of the step is a state's or a row");
}

TEST(Recurrence, ParametersFromElsewhereAreChecked) {
  auto r = make<Recurrence>(*Step().repeated());
  r->outputs = Array<Ref<const Buffer>>{r->outputs[0]};
  EXPECT_NE(failure_of([&] { check(*r); }).find("the parameters are those that"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::loop

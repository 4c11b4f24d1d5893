#include "report/code_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vm/asm/assemble.h"

namespace tenon::report {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<CodeCall> calls_in(const vm::Unit& unit) {
  std::vector<CodeCall> calls;
  for_each_step(unit, unit.functions[0], [&](const CodeStep& step) {
    if (step.call) calls.push_back(*step.call);
  });
  return calls;
}

std::vector<CodeStep> steps_of(const vm::Unit& unit) {
  std::vector<CodeStep> steps;
  for_each_step(unit, unit.functions[0], [&](const CodeStep& step) {
    steps.push_back(step);
    steps.back().call = nullptr;  // which ends with the step
  });
  return steps;
}

TEST(CodeCalls, WriteTheTensorsThatNothingHasWritten) {
  const auto calls = calls_in(vm::assemble(R"(
packed $host.f
func @main(x: any) -> any {
  %1 = alloc_storage 64, 64, cpu:0
  %2 = alloc_tensor %1, 0, f32, 4
  _ = call_packed $host.f, %0, %2
  %3 = new_tensor cpu:0, f32, 4
  _ = call_packed $host.f, %2, %3
  _ = call_packed $host.f, %2, %3
  ret %3
}
)"));
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_THAT(calls[0].outputs, ElementsAre(2));
  EXPECT_FALSE(calls[0].arguments[0].is_output);
  EXPECT_TRUE(calls[0].arguments[1].is_output);
  EXPECT_THAT(calls[1].outputs, ElementsAre(3));
  EXPECT_THAT(calls[2].outputs, IsEmpty());
}

TEST(CodeCalls, HaveTheirCalleeAndSource) {
  const vm::Unit unit = vm::assemble(R"(
span "model.onnx" 0 0 "/conv"
packed $host.f
const "w" = tensor[2; i64] {1, 2}
func @main(x: any) -> any {
  %1 = alloc_closure @helper
  at 0
  %2 = call_packed $host.f, #0
  %3 = call @helper, %2
  %4 = call_closure %1, %3
  ret %4
}
func @helper(x: any) -> any {
  ret %0
}
)");
  EXPECT_EQ(steps_of(unit)[0].callee->label(), "@helper");
  const std::vector<CodeCall> calls = calls_in(unit);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].callee.label(), "host.f");
  EXPECT_THAT(calls[0].from->nodes, ElementsAre("/conv"));
  EXPECT_TRUE(calls[0].arguments[0].is_constant);
  EXPECT_EQ(calls[1].callee.label(), "@helper");
  EXPECT_EQ(calls[2].callee.label(), "closure");
}

TEST(CodeSteps, TellInputsFromSizesAndOutputs) {
  const auto steps = steps_of(vm::assemble(R"(
packed $host.f
func @main(x: any, n: any) -> any {
  %2 = new_tensor cpu:0, f32, %1
  _ = call_packed $host.f, %0, %2
  ret %2
}
)"));
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_THAT(steps[0].reads, ElementsAre(1));
  EXPECT_THAT(steps[0].inputs, IsEmpty());
  EXPECT_THAT(steps[0].writes, ElementsAre(2));
  EXPECT_THAT(steps[1].reads, ElementsAre(0, 2));
  EXPECT_THAT(steps[1].inputs, ElementsAre(0));
  EXPECT_THAT(steps[2].inputs, ElementsAre(2));
}

}  // namespace
}  // namespace tenon::report

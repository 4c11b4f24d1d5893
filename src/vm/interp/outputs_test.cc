#include "vm/interp/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object/array.h"
#include "support/error_testing.h"
#include "vm/asm/assemble.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// `fill` stands for a kernel: it writes 1, 2, ... to its argument.
constexpr char kProgram[] = R"(
packed $test.fill
func @made(n: i64) -> tensor[n; f32] {
  %1 = alloc_result 0, cpu:0, f32, %0
  _ = call_packed $test.fill, %1
  ret %1!
}
func @pair(n: i64) -> (tensor[n; f32], tensor[n; f32]) {
  %1 = call @made, %0
  %2 = alloc_result 1, cpu:0, f32, %0
  _ = call_packed $test.fill, %2
  %1 = alloc_tuple %1!, %2!
  ret %1!
}
func @twice(n: i64) -> tensor[n; f32] {
  %1 = alloc_result 0, cpu:0, f32, %0
  _ = call_packed $test.fill, %1
  %2 = alloc_result 0, cpu:0, f32, %0
  ret %1!
}
func @same(x: tensor[n; f32]) -> tensor[n; f32] {
  ret %0!
}
func @first(x: any) -> tensor[n; f32] {
  %1 = get_field %0, 0
  ret %1!
}
func @swapped(x: any) -> (tensor[2; f32], tensor[2; f32]) {
  %1 = get_field %0, 1
  %2 = get_field %0, 0
  %0 = alloc_tuple %1!, %2!
  ret %0!
}
func @fixed() -> tensor[2, 3; f32] {
  %0 = alloc_result 0, cpu:0, f32, 6
  _ = call_packed $test.fill, %0
  %0 = reshape_tensor %0!, 2, 3
  ret %0!
}
func @anything(x: any) -> any {
  ret %0!
}
)";

ProgramOptions host() {
  ProgramOptions options;
  options.modules.push_back(Module(
      "host", "test", Map<String, Function>{{"test.fill", Function::from_typed([](const Tensor& t) {
                                               EXPECT_FALSE(t.read_only());
                                               for (int64_t i = 0; i < t.count(); ++i)
                                                 t.data_as<float>()[i] = static_cast<float>(i + 1);
                                             })}}));
  return options;
}

struct OutputsOfACall : testing::Test {
  Machine m{program_of(assemble(kProgram), host())};

  Any call(std::string_view function, std::vector<Any> args, std::vector<Any> outputs) {
    return m.call_into(function, std::vector<AnyView>(args.begin(), args.end()),
                       std::vector<AnyView>(outputs.begin(), outputs.end()));
  }
  std::string failure(std::string_view function, std::vector<Any> args, std::vector<Any> outputs) {
    return failure_of([&] { call(function, args, outputs); });
  }
  static Tensor empty(std::initializer_list<int64_t> shape) {
    Tensor t = Tensor::empty(shape, f32);
    std::fill_n(t.data_as<float>(), t.count(), -1.f);
    return t;
  }
  static std::vector<float> values(const Tensor& t) {
    return {t.data_as<float>(), t.data_as<float>() + t.count()};
  }
};

TEST_F(OutputsOfACall, AreWrittenWhereTheResultIsAllocated) {
  const Tensor out = empty({3});
  const size_t before = m.memory().allocations;
  const Any result = call("made", {Any(3)}, {Any(out)});
  EXPECT_EQ(result.as<Tensor>().get(), out.get());
  EXPECT_THAT(values(out), ElementsAre(1, 2, 3));
  EXPECT_EQ(m.memory().allocations, before);
  EXPECT_THAT(values(m.call("made", 2).as<Tensor>()), ElementsAre(1, 2)) << "allocates as before";
}

TEST_F(OutputsOfACall, AreOnlyOfTheFunctionThatTheHostCalls) {
  const Tensor first = empty({3}), second = empty({3});
  const auto result = call("pair", {Any(3)}, {Any(first), Any(second)}).as<Array<Any>>();
  EXPECT_THAT(values(first), ElementsAre(1, 2, 3)) << "copied from the callee's result";
  EXPECT_THAT(values(second), ElementsAre(1, 2, 3));
  EXPECT_EQ(result[0].as<Tensor>().get(), first.get());
  EXPECT_EQ(result[1].as<Tensor>().get(), second.get());
}

TEST_F(OutputsOfACall, MayBeLeftToTheMachine) {
  const Tensor second = empty({3});
  const auto result = call("pair", {Any(3)}, {Any(), Any(second)}).as<Array<Any>>();
  EXPECT_THAT(values(result[0].as<Tensor>()), ElementsAre(1, 2, 3));
  EXPECT_THAT(values(second), ElementsAre(1, 2, 3));
}

TEST_F(OutputsOfACall, AreTakenOnce) {
  const Tensor out = empty({3});
  call("twice", {Any(3)}, {Any(out)});
  EXPECT_THAT(values(out), ElementsAre(1, 2, 3));
}

TEST_F(OutputsOfACall, MayBeReshapedByTheProgram) {
  const Tensor out = empty({2, 3});
  EXPECT_EQ(call("fixed", {}, {Any(out)}).as<Tensor>().get(), out.get());
  EXPECT_THAT(values(out), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(OutputsOfACall, ReceiveCopiesOfResultsThatExistedBefore) {
  const Tensor x = empty({2}), out = empty({2});
  x.data_as<float>()[0] = 5;
  call("same", {Any(x)}, {Any(out)});
  EXPECT_THAT(values(out), ElementsAre(5, -1));
}

TEST_F(OutputsOfACall, MayOverlapWhatAnArrayHolds) {
  const Tensor x = empty({2}), y = empty({2});
  x.data_as<float>()[0] = 5;
  call("swapped", {Any(Array<Any>{Any(x), Any(y)})}, {Any(x), Any(y)});
  EXPECT_THAT(values(x), ElementsAre(-1, -1));
  EXPECT_THAT(values(y), ElementsAre(5, -1));
}

TEST_F(OutputsOfACall, AreRefusedIfTheyDoNotFit) {
  EXPECT_THAT(failure("made", {Any(3)}, {}),
              testing::AllOf(HasSubstr("a call needs one output, or None, for each result"),
                             HasSubstr("tensor[n; f32]")));
  EXPECT_THAT(failure("made", {Any(3)}, {Any(Tensor::empty({3}, i32))}),
              testing::AllOf(HasSubstr("output 0 can't hold the result of function 'made'"),
                             HasSubstr("tensor[3; i32]"), HasSubstr("tensor[n; f32]")));
  EXPECT_THAT(failure("fixed", {}, {Any(empty({3, 2}))}), HasSubstr("tensor[2, 3; f32]"));
  EXPECT_THAT(failure("made", {Any(3)}, {Any(7)}), HasSubstr("found     int"));
  EXPECT_THAT(failure("made", {Any(3)}, {Any(empty({4}))}),
              testing::AllOf(HasSubstr("output 0 doesn't have the type of the result"),
                             HasSubstr("tensor[4; f32]"), HasSubstr("tensor[3; f32]")));
  EXPECT_THAT(failure("made", {Any(3)}, {Any(empty({3}).as_read_only())}),
              HasSubstr("output 0 is read-only"));
}

TEST_F(OutputsOfACall, AreRefusedIfTheResultIsNoTensor) {
  const Any output(Tensor::empty({2}, f32));
  EXPECT_THAT(failure("anything", {Any()}, {output}),
              HasSubstr("output 0 doesn't have the type of the result\n"
                        "  found     tensor[2; f32]\n"
                        "  expected  None"));
  EXPECT_THAT(failure("anything", {Any(int64_t{1})}, {output}), HasSubstr("expected  int"));
  EXPECT_TRUE(call("anything", {Any()}, {Any()}).is_none());
}

TEST_F(OutputsOfACall, AreCompactAndAligned) {
  float memory[8] = {};
  int64_t shape[] = {3}, strides[] = {2};
  auto over = [&](void* data, int64_t* steps) {
    auto* managed = new DLManagedTensor{};
    managed->dl_tensor = {data, kCpu, 1, f32, shape, steps, 0};
    managed->deleter = [](DLManagedTensor* t) { delete t; };
    return Any(Tensor::from_dlpack(managed));
  };
  EXPECT_THAT(failure("made", {Any(3)}, {over(memory, strides)}),
              HasSubstr("is not in row-major order"));
  EXPECT_THAT(failure("made", {Any(3)}, {over(reinterpret_cast<char*>(memory) + 1, nullptr)}),
              HasSubstr("is not aligned to its elements"));
}

TEST_F(OutputsOfACall, OverlapNeitherInputsNorEachOther) {
  const Tensor x = empty({4});
  EXPECT_THAT(
      failure("same", {Any(x)}, {Any(x)}),
      testing::AllOf(HasSubstr("output 0 overlaps an input"), HasSubstr("with memory of its own")));
  Any half(Tensor::view(x.data_as<float>() + 2, std::vector<int64_t>{4}, f32, x.ref(), false));
  EXPECT_THAT(failure("same", {half}, {Any(x)}), HasSubstr("overlaps an input"));
  EXPECT_THAT(failure("pair", {Any(4)}, {Any(x), half}), HasSubstr("overlaps another output"));
}

TEST_F(OutputsOfACall, WorkForFunctionValues) {
  const Ref<Program> program = program_of(assemble(kProgram), host());
  const Any made(program->function("made"));
  const Tensor out = empty({2});
  const Any n(2), output(out);
  const AnyView args[] = {n}, outputs[] = {output};
  ClosureObj::of_program(made, nullptr)->call_into(args, outputs);
  EXPECT_THAT(values(out), ElementsAre(1, 2));

  // An argument that is bound is an input as well.
  const AnyView x = outputs[0];
  const Function same =
      ClosureObj::of_program(Any(program->function("same")), nullptr)->bound({&x, 1});
  EXPECT_THAT(
      failure_of([&] { ClosureObj::of_program(Any(same), nullptr)->call_into({}, outputs); }),
      HasSubstr("overlaps an input"));
}

}  // namespace
}  // namespace tenon::vm

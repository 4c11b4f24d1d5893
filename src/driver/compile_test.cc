#include "driver/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "codegen/llvm/target.h"
#include "graph/ir/text.h"
#include "vm/executable/cpu_features.h"
#include "vm/executable/kernel_object.h"
#include "vm/executable/write_file.h"

namespace tenon::driver {
namespace {

// Values that die together release their registers in an order that doesn't depend on addresses.
constexpr const char* kProgram = R"(
  fn @main(%x: tensor[n, 4; f32], %w: tensor[4, 8; f32], %v: tensor[8; f32]) -> tensor[n, 8; f32] {
    %a = matmul(%x, %w)
    %b = matmul(%x, %w)
    %p = softmax(%a, axis=-1)
    %q = softmax(%b, axis=0)
    %s = add(%p, %q)
    %t = cumsum(%s, axis=1)
    %y = add(%t, %v)
    %y
  })";

std::string compile_to_bytes(const std::string& text, int level) {
  initialise();
  CompileOptions options;
  options.cpu = {"x86-64-v3"};
  options.level = level;
  return vm::write_to_bytes(compile(graph::parse_module(text, "test.tn"), options));
}

class CompileTest : public testing::TestWithParam<int> {};

TEST_P(CompileTest, GivesTheSameBytesEveryTime) {
  const std::string text = kProgram;
  const std::string first = compile_to_bytes(text, GetParam());
  std::vector<std::string> noise;  // moves what is allocated next
  for (int i = 0; i < 4; ++i) {
    noise.emplace_back(static_cast<size_t>(1000 * i + 17), 'x');
    EXPECT_EQ(compile_to_bytes(text, GetParam()), first);
  }
}

// Threads share tables, LLVM and the linker, but nothing that the bytes depend on.
TEST_P(CompileTest, GivesTheSameBytesOnSeveralThreadsAtOnce) {
  const std::string first = compile_to_bytes(kProgram, GetParam());
  std::array<std::string, 3> bytes;
  {
    std::vector<std::jthread> threads;
    for (std::string& result : bytes) {
      threads.emplace_back([&result] { result = compile_to_bytes(kProgram, GetParam()); });
    }
  }
  EXPECT_THAT(bytes, testing::Each(first));
}

vm::Unit compile_for(const std::vector<std::string>& cpus) {
  initialise();
  CompileOptions options;
  options.cpu = cpus;
  return compile(graph::parse_module(kProgram, "test.tn"), options);
}

// The features of the code that a machine with those of `cpu` would take.
std::vector<std::string> taken_on(const vm::Unit& unit, const char* cpu) {
  const Ref<vm::KernelObject> object =
      vm::KernelObject::open_best(unit, "test", codegen::parse_target(cpu).features);
  vm::CpuFeatureSet features;
  std::memcpy(features.data(), object->table->cpu_features, sizeof object->table->cpu_features);
  return vm::cpu_feature_names(features);
}

TEST(CompileForSeveralCpus, TheLoaderTakesTheBestThatTheMachineCanRun) {
  const vm::Unit unit = compile_for({"x86-64-v2", "x86-64-v4", "x86-64-v3"});
  ASSERT_EQ(unit.kernels.size(), 3u);
  for (const char* cpu : {"x86-64-v2", "x86-64-v3"}) {
    const std::vector<std::string> wanted = codegen::parse_target(cpu).features;
    if (!vm::missing_cpu_features(wanted).empty()) continue;
    EXPECT_EQ(taken_on(unit, cpu), wanted);
  }
  EXPECT_THROW(vm::KernelObject::open_best(unit, "test", codegen::parse_target("x86-64").features),
               Error);
}

TEST(CompileForSeveralCpus, BytesDoNotDependOnTheirOrder) {
  EXPECT_EQ(vm::write_to_bytes(compile_for({"x86-64-v2", "x86-64-v3"})),
            vm::write_to_bytes(compile_for({"x86-64-v3", "x86-64-v2"})));
}

TEST(CompileForSeveralCpus, ALowerOneIsTheSameCodeAsItsOwnFile) {
  const vm::Unit both = compile_for({"x86-64-v2", "x86-64-v3"}), low = compile_for({"x86-64-v2"});
  EXPECT_EQ(both.kernels[1].host_object()->bytes, low.kernels[0].host_object()->bytes);
}

INSTANTIATE_TEST_SUITE_P(Levels, CompileTest, testing::Values(0, 1, 2));

}  // namespace
}  // namespace tenon::driver

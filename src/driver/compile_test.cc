#include "driver/compile.h"

#include <gtest/gtest.h>

#include "graph/ir/text.h"
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
  options.target = codegen::parse_target("x86-64-v3");
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

INSTANTIATE_TEST_SUITE_P(Levels, CompileTest, testing::Values(0, 1, 2));

}  // namespace
}  // namespace tenon::driver

#include "codegen/bytecode/emit.h"

#include <gmock/gmock.h>

#include "graph/ir/text.h"
#include "graph/op/register.h"

namespace tenon::codegen {
namespace {

using testing::HasSubstr;

vm::Unit emitted(const std::string& text) {
  graph::register_graph_types();
  graph::register_operators();
  return emit_unit(graph::parse_module(text, "test.tn"));
}

// Passes `x` through `count` branches, next to a value that is used after all of them.
vm::FunctionUnit branches(int count) {
  std::string text =
      "fn @main(%c: bool, %kept: tensor[2; f32], %x0: i64) -> (i64, tensor[2; f32]) {\n";
  for (int i = 0; i < count; ++i) {
    text += cat("  %x", i + 1, " = if %c { %y", i, " = mul(%x", i, ", 3)\n add(%y", i,
                ", 1) } else { %x", i, " }\n");
  }
  return emitted(text + cat("  (%x", count, ", %kept)\n}\n")).functions[0];
}

TEST(Emit, NeedsAFewRegistersForThousandsOfBranches) {
  const vm::FunctionUnit some = branches(100), many = branches(5000);
  EXPECT_LE(some.register_count, 4u);
  EXPECT_EQ(many.register_count, some.register_count);
  EXPECT_EQ(many.code.size() - some.code.size(),
            (many.code.size() - branches(2550).code.size()) * 2);
}

// Sizes computed one after another share registers.
TEST(Emit, NeedsAFewRegistersForThousandsOfSizes) {
  std::string text = "fn @main(%x: tensor[n; f32]) -> () {\n";
  for (int i = 0; i < 3000; ++i)
    text += cat("  %s", i, " = packed \"see\"(size=dim(n + ", i + 1, ")) -> ()\n");
  const vm::Unit unit = emitted(text + "  ()\n}\n");
  EXPECT_LE(unit.functions[0].register_count, 2u);
}

TEST(Emit, RefusesTwoResultsOfOneName) {
  const auto text = [](const char* names) {
    return cat("fn @main(%x: i64) -> (i64, i64) attrs(results=", names, ") {\n  (%x, %x)\n}\n");
  };
  try {
    emitted(text(R"(["a\n", "a\\n"])"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.render(), HasSubstr("two results have the name"));
  }
  EXPECT_EQ(emitted(text(R"(["a", "b"])")).functions[0].result_names.size(), 2u);
}

}  // namespace
}  // namespace tenon::codegen

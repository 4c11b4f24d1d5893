#include "codegen/llvm/bytecode_flow.h"

#include <gmock/gmock.h>

#include "vm/asm/assemble.h"

namespace tenon::codegen {
namespace {

using ::testing::ElementsAre;

std::vector<uint32_t> pieces_of(const BytecodeFlow& flow) {
  std::vector<uint32_t> begins;
  for (const FlowBlock& block : flow.blocks) {
    if (block.begins_piece) begins.push_back(block.first);
  }
  return begins;
}

TEST(BytecodeFlow, ALoopWithoutCallsIsOnePiece) {
  const vm::Unit unit = vm::assemble(R"(
func @count(n: i64) -> i64 {
  %1 = move 0
again:
  %2 = lt %1, %0
  if %2, end
  %1 = add %1, 1
  goto again
end:
  ret %1
}
)");
  const BytecodeFlow flow(unit.functions[0]);
  ASSERT_EQ(flow.blocks.size(), 4u);
  EXPECT_THAT(pieces_of(flow), ElementsAre());
  EXPECT_THAT(flow.blocks[1].next, ElementsAre(3, 2));
  EXPECT_TRUE(flow.blocks[1].live.has(0));
  EXPECT_TRUE(flow.blocks[1].live.has(1));
  EXPECT_FALSE(flow.blocks[1].live.has(2));
  EXPECT_FALSE(flow.blocks[3].live.has(0));
}

// The loop's head is reached from the function's entry, and from what goes on after the call.
TEST(BytecodeFlow, ALoopWithACallBeginsAPieceAtItsHead) {
  const vm::Unit unit = vm::assemble(R"(
func @step(n: i64) -> i64 {
  ret %0
}
func @loop(n: i64) -> i64 {
  %1 = move 0
again:
  %2 = lt %1, %0
  if %2, end
  %1 = call @step, %1
  %1 = add %1, 1
  goto again
end:
  ret %1
}
)");
  const BytecodeFlow flow(unit.functions[1]);
  EXPECT_THAT(pieces_of(flow), ElementsAre(1));
  const FlowBlock& body = flow.blocks[2];
  ASSERT_TRUE(body.resumes.has_value());
  EXPECT_EQ(flow.instructions[flow.blocks[*body.resumes].first].opcode(), vm::Opcode::Add);
  EXPECT_THAT(body.next, ElementsAre());
}

TEST(BytecodeFlow, ALoopACallOrAMatchIsWorthCompiling) {
  EXPECT_FALSE(is_worth_compiling(vm::assemble(R"(
func @straight(n: i64) -> i64 {
  %1 = lt %0, 1
  if %1, end
  %0 = add %0, 1
end:
  ret %0
}
)")));
  EXPECT_TRUE(is_worth_compiling(vm::assemble(R"(
func @again(n: i64) -> i64 {
here:
  %0 = sub %0, 1
  goto here
}
)")));
  EXPECT_TRUE(is_worth_compiling(vm::assemble(R"(
func @self(n: i64) -> i64 {
  tail_call @self, %0
}
)")));
}

TEST(BytecodeFlow, AProgramOfManyCallsStaysBytecode) {
  auto program = [](int calls) {
    std::string text = "func @f(n: i64) -> i64 {\n";
    for (int i = 0; i < calls; ++i) text += "  %0 = call @f, %0\n";
    return vm::assemble(text + "  ret %0\n}\n");
  };
  EXPECT_TRUE(is_worth_compiling(program(200)));
  EXPECT_FALSE(is_worth_compiling(program(201)));
  vm::Unit unit = program(1);
  unit.functions[0].register_count = 129;
  EXPECT_FALSE(is_worth_compiling(unit));
}

}  // namespace
}  // namespace tenon::codegen

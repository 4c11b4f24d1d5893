#include "codegen/bytecode/comparison.h"

#include <gtest/gtest.h>

namespace tenon::codegen {
namespace {

using vm::Opcode;

TEST(Comparison, NegatesAndExchanges) {
  EXPECT_EQ(negate(Opcode::Lt), Opcode::Ge);
  EXPECT_EQ(negate(Opcode::Le), Opcode::Gt);
  EXPECT_EQ(negate(Opcode::Eq), Opcode::Ne);
  EXPECT_EQ(exchange(Opcode::Lt), Opcode::Gt);
  EXPECT_EQ(exchange(Opcode::Ge), Opcode::Le);
  EXPECT_EQ(exchange(Opcode::Ne), Opcode::Ne);
  EXPECT_EQ(negate(Opcode::Add), std::nullopt);
  EXPECT_EQ(exchange(Opcode::Add), std::nullopt);
}

TEST(Comparison, TurnsRoundTwiceToItself) {
  for (const vm::OpcodeInfo& info : vm::all_opcodes()) {
    if (auto opposite = negate(info.opcode)) {
      EXPECT_EQ(negate(*opposite), info.opcode);
    }
    if (auto exchanged = exchange(info.opcode)) {
      EXPECT_EQ(exchange(*exchanged), info.opcode);
    }
  }
}

}  // namespace
}  // namespace tenon::codegen

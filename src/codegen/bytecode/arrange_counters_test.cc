#include "codegen/bytecode/arrange_counters.h"

#include <gtest/gtest.h>

namespace tenon::codegen {
namespace {

using vm::Arg;
using vm::Opcode;

// loop (i = 0, x = 0) while n > i { i + 1 and x + i, in that order }
struct Counting {
  VirtualCode code;
  Arg i, next;
  BlockId header, body;

  explicit Counting(bool uses_next) {
    const BlockId entry = code.make_block(), exit = code.make_block();
    header = code.make_block();
    body = code.make_block();
    const Arg n = code.add_param(entry, false);
    i = code.add_param(header, false);
    const Arg x = code.add_param(header, false);
    code.start(entry);
    code.jump(header, {Arg::imm(0), Arg::imm(0)});
    const uint32_t loop = code.begin_loop(header, exit);
    code.start(header);
    const Arg more = code.make(false);
    code.emit(Opcode::Gt, {more, n, i});
    code.branch(more, body, exit);
    code.loop(loop).test = header;
    code.loop(loop).body = code.loop(loop).latch = body;
    code.start(body);
    next = code.make(false);
    const Arg sum = code.make(false);
    code.emit(Opcode::Add, {next, Arg::imm(1), i});
    code.emit(Opcode::Add, {sum, x, uses_next ? next : i});
    code.jump(header, {next, sum});
    code.end_loop();
    code.start(exit);
    code.ret(x);
  }
};

TEST(ArrangeCounters, MovesTheCounterToTheEndAndToTheFrontOfTheComparison) {
  Counting loop(/*uses_next=*/false);
  arrange_counters(&loop.code);
  EXPECT_EQ(loop.code.block(loop.body).instructions.back().operands[0], loop.next);
  const VirtualInstruction& comparison = loop.code.block(loop.header).instructions.back();
  EXPECT_EQ(comparison.opcode, Opcode::Lt);
  EXPECT_EQ(comparison.operands[1], loop.i);
}

TEST(ArrangeCounters, LeavesACounterThatTheBodyUses) {
  Counting loop(/*uses_next=*/true);
  arrange_counters(&loop.code);
  EXPECT_EQ(loop.code.block(loop.body).instructions.front().operands[0], loop.next);
}

}  // namespace
}  // namespace tenon::codegen

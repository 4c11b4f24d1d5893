#include "codegen/bytecode/reuse_cells.h"

#include <gmock/gmock.h>

#include "codegen/bytecode/liveness.h"

namespace tenon::codegen {
namespace {

using testing::ElementsAre;
using vm::Arg;
using vm::Opcode;

const VirtualInstruction& at(VirtualCode& code, BlockId block, size_t i) {
  return code.block(block).instructions.at(i);
}

TEST(ReuseCells, ReadsThatEndACellBecomeOneInstruction) {
  VirtualCode code;
  const BlockId entry = code.make_block();
  const Arg cell = code.add_param(entry, true);
  code.start(entry);
  const Arg second = code.make(true), number = code.make(false), third = code.make(true);
  code.get_field(second, cell, 1, 3);
  code.emit(Opcode::RankOf, {number, second});
  code.get_field(third, cell, 2, 3);
  const Arg both[] = {second, third, number};
  const Arg tuple = code.make(true);
  code.emit(Opcode::AllocTuple, {tuple}, both);
  code.ret(tuple);
  analyse_liveness(&code);
  EXPECT_TRUE(reuse_cells(&code));
  ASSERT_EQ(code.block(entry).instructions.size(), 3u);
  EXPECT_EQ(at(code, entry, 0).opcode, Opcode::TakeFields);
  EXPECT_THAT(at(code, entry, 0).operands, ElementsAre(cell, Arg::none(), second, third));
  EXPECT_EQ(at(code, entry, 1).opcode, Opcode::RankOf);
  analyse_liveness(&code);
  EXPECT_EQ(at(code, entry, 0).operands[0], Arg::last(cell.index()));
}

TEST(ReuseCells, NewCellsAreMadeInTheMemoryOnEachWay) {
  VirtualCode code;
  const BlockId entry = code.make_block(), yes = code.make_block(), no = code.make_block();
  const Arg cell = code.add_param(entry, true), truth = code.add_param(entry, false);
  code.start(entry);
  const Arg field = code.make(true);
  code.get_field(field, cell, 0, 1);
  code.branch(truth, yes, no);
  const Arg made[] = {code.make(true), code.make(true), code.make(true)};
  code.start(yes);
  code.emit(Opcode::AllocAdt, {made[0], Arg::imm(4)}, std::span(&field, 1));
  code.emit(Opcode::AllocAdt, {made[1], Arg::imm(5)}, std::span(&made[0], 1));
  code.ret(made[1]);
  code.start(no);
  const Arg two[] = {field, field};  // of another size
  code.emit(Opcode::AllocAdt, {made[2], Arg::imm(6)}, two);
  code.ret(made[2]);
  analyse_liveness(&code);
  EXPECT_TRUE(reuse_cells(&code));
  EXPECT_EQ(at(code, yes, 0).opcode, Opcode::ReuseAdt);
  EXPECT_THAT(at(code, yes, 0).operands, ElementsAre(made[0], cell, Arg::imm(4), testing::_));
  EXPECT_EQ(at(code, yes, 1).opcode, Opcode::AllocAdt);
  EXPECT_EQ(at(code, no, 0).opcode, Opcode::AllocAdt);
  const Liveness liveness = analyse_liveness(&code);
  EXPECT_EQ(at(code, yes, 0).operands[1], Arg::last(cell.index()));
  EXPECT_THAT(liveness.kills[no], ElementsAre(cell.index()));
}

TEST(ReuseCells, ACellThatIsUsedLaterStaysWhole) {
  VirtualCode code;
  const BlockId entry = code.make_block();
  const Arg cell = code.add_param(entry, true);
  code.start(entry);
  const Arg field = code.make(true), pair = code.make(true);
  code.get_field(field, cell, 0, 1);
  const Arg both[] = {field, cell};
  code.emit(Opcode::AllocTuple, {pair}, both);
  code.ret(pair);
  analyse_liveness(&code);
  EXPECT_FALSE(reuse_cells(&code));
  EXPECT_EQ(at(code, entry, 0).opcode, Opcode::GetField);
}

// Where the ways join, another one may come without the cell.
TEST(ReuseCells, NothingIsReusedBehindAJoin) {
  VirtualCode code;
  const BlockId entry = code.make_block(), yes = code.make_block(), no = code.make_block(),
                join = code.make_block();
  const Arg cell = code.add_param(entry, true), truth = code.add_param(entry, false),
            joined = code.add_param(join, true);
  code.start(entry);
  code.branch(truth, yes, no);
  code.start(yes);
  const Arg field = code.make(true);
  code.get_field(field, cell, 0, 1);
  code.jump(join, {field});
  code.start(no);
  code.jump(join, {cell});
  code.start(join);
  const Arg made = code.make(true);
  code.emit(Opcode::AllocAdt, {made, Arg::imm(0)}, std::span(&joined, 1));
  code.ret(made);
  analyse_liveness(&code);
  EXPECT_TRUE(reuse_cells(&code));
  EXPECT_EQ(at(code, yes, 0).opcode, Opcode::TakeFields);
  EXPECT_EQ(at(code, join, 0).opcode, Opcode::AllocAdt);
}

}  // namespace
}  // namespace tenon::codegen

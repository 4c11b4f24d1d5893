#include "codegen/bytecode/liveness.h"

#include <gmock/gmock.h>

#include "codegen/bytecode/assign_registers.h"

namespace tenon::codegen {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using vm::Arg;
using vm::Opcode;

// fn(object, truth) { if truth { object's tag } else { 0 } }
TEST(Liveness, ReleasesAValueInTheArmThatDoesNotUseIt) {
  VirtualCode code;
  const BlockId entry = code.make_block(), yes = code.make_block(), no = code.make_block();
  const Arg object = code.add_param(entry, true), truth = code.add_param(entry, false);
  code.start(entry);
  code.branch(truth, yes, no);
  code.start(yes);
  const Arg tag = code.make(false);
  code.emit(Opcode::GetTag, {tag, object});
  code.ret(tag);
  code.start(no);
  code.ret(Arg::imm(0));
  const Liveness liveness = analyse_liveness(&code);
  EXPECT_THAT(liveness.kills[yes], IsEmpty());
  EXPECT_THAT(liveness.kills[no], ElementsAre(object.index()));
  EXPECT_EQ(code.block(yes).instructions[0].operands[1], Arg::last(object.index()));
}

TEST(Liveness, MarksOnlyTheLastOperandOfAnInstruction) {
  VirtualCode code;
  const BlockId entry = code.make_block();
  const Arg object = code.add_param(entry, true);
  code.start(entry);
  const Arg pair = code.make(true);
  const Arg twice[] = {object, object};
  code.emit(Opcode::AllocTuple, {pair}, twice);
  code.ret(pair);
  analyse_liveness(&code);
  EXPECT_THAT(code.block(entry).instructions[0].operands,
              ElementsAre(pair, object, Arg::last(object.index())));
  EXPECT_EQ(code.block(entry).value, Arg::last(pair.index()));
}

TEST(Liveness, DropsResultsThatNothingReads) {
  VirtualCode code;
  const BlockId entry = code.make_block();
  const Arg x = code.add_param(entry, true), unused = code.add_param(entry, true);
  code.start(entry);
  const Arg rank = code.make(false), n = code.make(false);
  code.emit(Opcode::RankOf, {rank, x});
  const vm::DimPattern dims[] = {vm::DimPattern::store(n.index())};
  code.match_shape(x, dims);
  code.ret(Arg::imm(0));
  const Liveness liveness = analyse_liveness(&code);
  EXPECT_EQ(code.block(entry).instructions[0].operands[0], Arg::none());
  EXPECT_THAT(code.block(entry).instructions[1].operands,
              ElementsAre(Arg::last(x.index()), Arg::imm(0), Arg::none()));
  EXPECT_THAT(liveness.ranges[rank.index()], IsEmpty());
  EXPECT_THAT(liveness.kills[entry], ElementsAre(unused.index()));
}

// fn(n, kept, used, behind) { loop (i = 0) while i < n { tag of used; i + 1 }; (kept, behind) }
struct LoopCode {
  VirtualCode code;
  Arg n, kept, used, behind, i, next;
  BlockId entry, header, body, exit;

  LoopCode() {
    entry = code.make_block();
    header = code.make_block();
    body = code.make_block();
    exit = code.make_block();
    n = code.add_param(entry, false);
    kept = code.add_param(entry, true);
    used = code.add_param(entry, true);
    i = code.add_param(header, false);
    code.start(entry);
    code.jump(header, {Arg::imm(0)});
    const uint32_t loop = code.begin_loop(header, exit);
    code.start(header);
    const Arg goes_on = code.make(false);
    behind = code.make(true);
    code.emit(Opcode::ShapeOf, {behind, kept});
    code.emit(Opcode::Lt, {goes_on, i, n});
    code.branch(goes_on, body, exit);
    code.loop(loop).test = header;
    code.loop(loop).body = code.loop(loop).latch = body;
    code.start(body);
    const Arg tag = code.make(false);
    next = code.make(false);
    code.emit(Opcode::GetTag, {tag, used});
    code.emit(Opcode::Add, {next, i, tag});
    code.jump(header, {next});
    code.end_loop();
    code.start(exit);
    const Arg result = code.make(true);
    const Arg fields[] = {kept, behind};
    code.emit(Opcode::AllocTuple, {result}, fields);
    code.ret(result);
  }
};

TEST(Liveness, KeepsWhatALoopUsesUntilTheLoopEnds) {
  LoopCode loop;
  const Liveness liveness = analyse_liveness(&loop.code);
  EXPECT_EQ(loop.code.block(loop.body).instructions[0].operands[1], loop.used);
  EXPECT_THAT(liveness.kills[loop.exit], ElementsAre(loop.used.index()));
  // A value that the condition defines for the code after the loop is released when the loop
  // continues.
  EXPECT_THAT(liveness.kills[loop.body], ElementsAre(loop.behind.index()));
}

TEST(Liveness, CoversTheLoopWithWhatIsUsedBehindIt) {
  LoopCode loop;
  const Liveness liveness = analyse_liveness(&loop.code);
  EXPECT_EQ(liveness.ranges[loop.kept.index()].size(), 1u);
  // Defined anew in each iteration: one range in the condition, one after the loop.
  EXPECT_EQ(liveness.ranges[loop.behind.index()].size(), 2u);
}

// ---- registers ----

TEST(AssignRegisters, CoalescesALoopsVariableWithItsNextValue) {
  LoopCode loop;
  const Liveness liveness = analyse_liveness(&loop.code);
  const Assignment assignment = assign_registers(loop.code, liveness);
  EXPECT_EQ(assignment.registers[loop.i.index()], assignment.registers[loop.next.index()]);
  EXPECT_EQ(assignment.registers[loop.used.index()], 2u);
}

// x1 = x0 + 1, x2 = x1 + 1, ...: one register.
TEST(AssignRegisters, ReusesRegistersOfSizes) {
  VirtualCode code;
  const BlockId entry = code.make_block();
  Arg x = code.add_param(entry, false);
  code.start(entry);
  for (int i = 0; i < 10'000; ++i) {
    const Arg sum = code.make(false);
    code.emit(Opcode::AddChecked, {sum, x, Arg::imm(1)});
    x = sum;
  }
  code.ret(x);
  const Liveness liveness = analyse_liveness(&code);
  EXPECT_EQ(assign_registers(code, liveness).count, 1u);
}

TEST(AssignRegisters, NeverPutsTwoLiveValuesInOneRegister) {
  LoopCode loop;
  const Liveness liveness = analyse_liveness(&loop.code);
  const Assignment assignment = assign_registers(loop.code, liveness);
  for (Register a = 0; a < loop.code.register_count(); ++a) {
    for (Register b = 0; b < a; ++b) {
      for (const LiveRange& x : liveness.ranges[a]) {
        for (const LiveRange& y : liveness.ranges[b]) {
          if (x.from >= y.to || y.from >= x.to) continue;
          EXPECT_NE(assignment.registers[a], assignment.registers[b]) << to_text(loop.code);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::codegen

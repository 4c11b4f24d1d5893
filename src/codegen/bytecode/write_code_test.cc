#include "codegen/bytecode/write_code.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace tenon::codegen {
namespace {

using vm::Arg;
using vm::Opcode;

vm::FunctionUnit written(VirtualCode* code) {
  vm::FunctionUnit out;
  const Liveness liveness = analyse_liveness(code);
  write_code(*code, liveness, assign_registers(*code, liveness), 0, &out);
  return out;
}

std::vector<vm::Instruction> instructions(const vm::FunctionUnit& unit) {
  std::vector<vm::Instruction> out;
  for (uint32_t at = 0; at < unit.code.size(); at += out.back().words()) {
    out.emplace_back();
    EXPECT_TRUE(vm::decode(unit.code, at, &out.back()));
  }
  return out;
}

std::vector<std::string> mnemonics(const vm::FunctionUnit& unit) {
  std::vector<std::string> out;
  for (const vm::Instruction& in : instructions(unit)) out.emplace_back(in.info->mnemonic);
  return out;
}

// A self call whose arguments are constants and the function's own parameters, in any order and
// possibly repeated: compares what the registers hold at the call.
TEST(WriteCode, PassesEdgesAllAtOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const uint32_t count = 1 + random() % 8;
    const bool owns = random() % 2;
    VirtualCode code;
    const BlockId entry = code.make_block();
    std::vector<Arg> params, args;
    for (uint32_t i = 0; i < count; ++i) params.push_back(code.add_param(entry, owns));
    for (uint32_t i = 0; i < count; ++i) {
      args.push_back(random() % 5 ? params[random() % count] : Arg::imm(100 + i));
    }
    code.start(entry);
    code.self_call(args);
    const vm::FunctionUnit unit = written(&code);

    // Values 0, 1, ...; -1 is None. A value with two owners was copied.
    std::vector<int64_t> registers(unit.register_count, -1);
    for (uint32_t i = 0; i < count; ++i) registers[i] = i;
    for (const vm::Instruction& in : instructions(unit)) {
      switch (in.opcode()) {
        case Opcode::Kill:
          for (vm::Word word : in.list()) registers[Arg(word).index()] = -1;
          break;
        case Opcode::LoadInt:
          registers[in.arg(0).index()] = in.arg(1).value();
          break;
        case Opcode::Move: {
          const uint32_t from = in.arg(1).index();
          const int64_t value = registers[from];
          if (in.arg(1).is(vm::ArgKind::LastUse)) registers[from] = -1;
          registers[in.arg(0).index()] = value;
          break;
        }
        default:
          ASSERT_EQ(in.opcode(), Opcode::TailCall);
          for (uint32_t i = 0; i < count; ++i) {
            const int64_t expected = args[i].is(vm::ArgKind::Immediate)
                                         ? args[i].value()
                                         : static_cast<int64_t>(args[i].index());
            EXPECT_EQ(registers[i], expected) << to_text(code);
            EXPECT_EQ(in.arg(1 + i).index(), i);
          }
      }
    }
  }
}

TEST(WriteCode, PutsTheConditionBehindTheBody) {
  VirtualCode code;
  const BlockId entry = code.make_block(), header = code.make_block(), body = code.make_block(),
                exit = code.make_block();
  const Arg n = code.add_param(entry, false), i = code.add_param(header, false);
  code.start(entry);
  code.jump(header, {Arg::imm(0)});
  const uint32_t loop = code.begin_loop(header, exit);
  code.start(header);
  const Arg less = code.make(false);
  code.emit(Opcode::Lt, {less, i, n});
  code.branch(less, body, exit);
  code.loop(loop).test = header;
  code.loop(loop).body = code.loop(loop).latch = body;
  code.start(body);
  const Arg next = code.make(false);
  code.emit(Opcode::Add, {next, i, Arg::imm(1)});
  code.jump(header, {next});
  code.end_loop();
  code.start(exit);
  code.ret(i);
  const vm::FunctionUnit unit = written(&code);
  EXPECT_EQ(mnemonics(unit),
            (std::vector<std::string>{"load_int", "goto", "add", "ge", "if", "ret"}));
}

// An arm whose result already is in the right register has no code. if_eq jumps if its operands
// differ.
TEST(WriteCode, JumpsPastAnEmptyArm) {
  VirtualCode code;
  const BlockId entry = code.make_block(), yes = code.make_block(), no = code.make_block(),
                join = code.make_block();
  const Arg truth = code.add_param(entry, false), x = code.add_param(entry, false),
            chosen = code.add_param(join, false);
  code.start(entry);
  code.branch(truth, yes, no);
  code.start(yes);
  code.jump(join, {x});
  code.start(no);
  code.jump(join, {Arg::imm(1)});
  code.start(join);
  code.ret(chosen);
  EXPECT_EQ(mnemonics(written(&code)), (std::vector<std::string>{"if_eq", "load_int", "ret"}));
}

}  // namespace
}  // namespace tenon::codegen

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "vm/isa/allocation.h"
#include "vm/isa/isa_document.h"
#include "vm/isa/operand_check.h"
#include "vm/isa/operand_index.h"

namespace tenon::vm {
namespace {

TEST(Opcodes, EveryRowIsFoundByNumberAndMnemonic) {
  for (const OpcodeInfo& info : all_opcodes()) {
    EXPECT_EQ(find_opcode(static_cast<uint32_t>(info.opcode)), &info);
    EXPECT_EQ(find_opcode(info.mnemonic), &info);
    EXPECT_EQ(&info_of(info.opcode), &info);
  }
  EXPECT_EQ(find_opcode(0u), nullptr);
  EXPECT_EQ(find_opcode(0xffffu), nullptr);
  EXPECT_EQ(find_opcode("nonsense"), nullptr);
}

TEST(Opcodes, SpecsCountWordsOfPairs) {
  const OpcodeInfo& info = info_of(Opcode::Switch);
  EXPECT_EQ(info.fixed_words, 2u);
  uint32_t part = 9;
  EXPECT_EQ(info.spec_at(4, &part).name(), "cases");
  EXPECT_EQ(part, 0u);
  EXPECT_EQ(info.spec_at(5, &part).kind, OperandKind::Case);
  EXPECT_EQ(part, 1u);
}

// A tensor of a dtype and sizes, without elements, is one that nothing has written yet.
TEST(Opcodes, AreFreshIfTheyMakeATensorWithoutElements) {
  for (const OpcodeInfo& info : all_opcodes()) {
    bool has_sizes = false;
    for (const OperandSpec& spec : info.specs()) {
      has_sizes = has_sizes || spec.name() == "dims" || spec.name() == "shape";
    }
    const bool states_tensor =
        info.has_result() && info.has_operand(OperandKind::Dtype) && has_sizes;
    EXPECT_EQ(info.makes_fresh(), states_tensor) << std::string_view(info.mnemonic);
  }
}

Instruction decoded(const std::vector<Word>& code) {
  Instruction in;
  EXPECT_TRUE(decode(code, 0, &in));
  return in;
}

TEST(Allocation, OfATensorInAStorage) {
  std::vector<Word> code = {encode_header(Opcode::AllocTensor, 6),
                            Arg::reg(0).word,
                            Arg::reg(1).word,
                            Arg::imm(64).word,
                            Arg::dtype(f32).word,
                            Arg::imm(2).word,
                            Arg::imm(3).word};
  const auto tensor = fresh_tensor(decoded(code));
  ASSERT_TRUE(tensor && tensor->place);
  EXPECT_EQ(tensor->bytes(), 24);
  EXPECT_EQ(tensor->place->storage, 1u);
  EXPECT_EQ(tensor->place->offset.value(), 64);
  EXPECT_FALSE(block_of(decoded(code)));
  code.back() = Arg::reg(2).word;
  EXPECT_EQ(fresh_tensor(decoded(code))->bytes(), std::nullopt);
}

TEST(Allocation, OfABlock) {
  const Word cpu = Arg::device({kDLCPU, 0}).word;
  const std::vector<Word> tensor = {encode_header(Opcode::NewTensor, 4), Arg::reg(0).word, cpu,
                                    Arg::dtype(f32).word, Arg::imm(5).word};
  EXPECT_EQ(block_of(decoded(tensor))->bytes, 20);
  const std::vector<Word> storage = {encode_header(Opcode::AllocStorage, 4), Arg::reg(0).word,
                                     Arg::imm(99).word, Arg::imm(64).word, cpu};
  EXPECT_EQ(block_of(decoded(storage))->bytes, 99);
  EXPECT_FALSE(fresh_tensor(decoded(storage)));
  const std::vector<Word> copy = {encode_header(Opcode::DeviceCopy, 3), Arg::reg(0).word,
                                  Arg::reg(1).word, cpu};
  ASSERT_TRUE(block_of(decoded(copy)));
  EXPECT_EQ(block_of(decoded(copy))->bytes, std::nullopt);
}

TEST(Operands, HavePositionsByName) {
  static_assert(operand(Opcode::AllocStorage, "dst") == 0);
  static_assert(operand(Opcode::AllocStorage, "size") == 1);
  static_assert(operand(Opcode::Switch, "cases") == 2);
  // Neither the destination nor the dtype is a value.
  static_assert(value_operand(Opcode::AllocStorage, "size") == 0);
  static_assert(value_operand(Opcode::AllocTensor, "dims") == 2);
  for (const OpcodeInfo& info : all_opcodes()) {
    std::string_view row = operand_row(info.opcode);
    for (const OperandSpec& spec : info.specs()) EXPECT_EQ(take_operand(row).name, spec.name());
    EXPECT_EQ(row, "") << std::string_view(info.mnemonic);
  }
}

// A kind's role must fit the words that it accepts.
TEST(Operands, HaveRolesThatFitTheirKinds) {
  const auto bit = [](ArgKind kind) { return 1u << static_cast<unsigned>(kind); };
  const unsigned registers = bit(ArgKind::Register) | bit(ArgKind::LastUse);
  for (const OpcodeInfo& info : all_opcodes()) {
    for (const OperandSpec& spec : info.specs()) {
      const unsigned accepted = accepted_kinds(spec.kind, 0);
      switch (role_of(spec.kind)) {
        case OperandRole::Writes:
          EXPECT_EQ(accepted | bit(ArgKind::None), bit(ArgKind::Register) | bit(ArgKind::None));
          break;
        case OperandRole::ReadsValue:
        case OperandRole::ReadsNumber:
          if (accepted != bit(ArgKind::Borrowed)) {
            EXPECT_EQ(accepted & registers, registers) << name_of(spec.kind);
          }
          break;
        default:
          EXPECT_EQ(accepted & registers, 0u) << name_of(spec.kind);
          break;
      }
    }
  }
}

TEST(Operands, OfDimsHaveTheRoleThatTheFirstWordSays) {
  const auto role = [](DimMatch match) {
    return role_of(OperandKind::Dim, 1, Arg::imm(static_cast<int64_t>(match)));
  };
  EXPECT_EQ(role_of(OperandKind::Dim, 0, Arg::imm(0)), OperandRole::Pair);
  EXPECT_EQ(role(DimMatch::Ignore), OperandRole::Unused);
  EXPECT_EQ(role(DimMatch::EqualsImmediate), OperandRole::Literal);
  EXPECT_EQ(role(DimMatch::EqualsRegister), OperandRole::ReadsNumber);
  EXPECT_EQ(role(DimMatch::Store), OperandRole::Writes);
  EXPECT_EQ(role_of(OperandKind::Case, 1, Arg::imm(7)), OperandRole::Target);
}

TEST(Operands, HaveImmediatesInTheRangeOfTheirKind) {
  // What is expected instead of the number; "" if it is in range.
  const auto expected = [](Opcode opcode, std::vector<Arg> operands) -> std::string {
    std::vector<Word> code = {encode_header(opcode, static_cast<uint32_t>(operands.size()))};
    for (Arg operand : operands) code.push_back(operand.word);
    Instruction in;
    EXPECT_TRUE(decode(code, 0, &in));
    const auto violation = check_operand_kinds(in);
    if (!violation) return "";
    EXPECT_EQ(violation->rule, Rule::ImmediateRange);
    return violation->expected;
  };
  const auto align = [&](int64_t n) {
    return expected(Opcode::AllocStorage,
                    {Arg::reg(0), Arg::imm(8), Arg::imm(n), Arg::device({kDLCPU, 0})});
  };
  for (int64_t n : {1, 64, 4096}) EXPECT_EQ(align(n), "") << n;
  for (int64_t n : {0, 48, 8192, -64}) {
    EXPECT_EQ(align(n), "an alignment from 1 to 4096, a power of two") << n;
  }
  const auto tag = [&](int64_t n) {
    return expected(Opcode::AllocAdt, {Arg::reg(0), Arg::imm(n)});
  };
  for (int64_t n : {int64_t{0}, int64_t{0x7fffffff}}) EXPECT_EQ(tag(n), "") << n;
  for (int64_t n : {int64_t{-1}, int64_t{0x80000000}}) {
    EXPECT_EQ(tag(n), "a tag from 0 to 2147483647") << n;
  }
  const auto rank = [&](int64_t n) {
    return expected(Opcode::MakeTensor, {Arg::reg(0), Arg::dtype(f32), Arg::imm(n), Arg::imm(5)});
  };
  for (int64_t n : {0, 1}) EXPECT_EQ(rank(n), "") << n;
  for (int64_t n : {-1, 2}) EXPECT_EQ(rank(n), "a rank from 0 to 1") << n;
  for (int64_t n : {-1, 4, 256}) {
    EXPECT_EQ(expected(Opcode::MatchPrimValue, {Arg::reg(0), Arg::imm(n), Arg::none()}),
              "a dim code from 0 to 3")
        << n;
  }
}

TEST(Arg, HoldsItsKindAndValue) {
  for (int64_t v : {int64_t{0}, int64_t{-1}, kMinImmediate, kMaxImmediate, int64_t{1} << 40}) {
    EXPECT_EQ(Arg::imm(v).value(), v);
    EXPECT_EQ(Arg::imm(v).kind(), ArgKind::Immediate);
  }
  EXPECT_EQ(Arg::dtype(f16).as_dtype(), f16);
  EXPECT_EQ(Arg::device({kDLCUDA, 3}).as_device().device_id, 3);
  EXPECT_FALSE(fits_immediate(kMaxImmediate + 1));
  EXPECT_EQ(to_text(Arg::last(3)), "%3!");
}

TEST(Decode, RefusesWhatIsNoInstruction) {
  Instruction in;
  Rule rule{};
  std::vector<Word> code = {encode_header(Opcode::Ret, 1), Arg::reg(0).word};
  EXPECT_TRUE(decode(code, 0, &in));
  EXPECT_FALSE(decode(code, 2, &in, &rule));
  EXPECT_EQ(rule, Rule::EndsInCode);
  code[0] = encode_header(Opcode::Ret, 2);
  EXPECT_FALSE(decode(code, 0, &in, &rule));
  EXPECT_EQ(rule, Rule::EndsInCode);
  code[0] = encode_header(Opcode{0x7777}, 1);
  EXPECT_FALSE(decode(code, 0, &in, &rule));
  EXPECT_EQ(rule, Rule::OpcodeKnown);
  code[0] = encode_header(Opcode::Ret, 1) | 1 << 16;
  EXPECT_FALSE(decode(code, 0, &in, &rule));
  EXPECT_EQ(rule, Rule::ReservedBits);
}

TEST(Rules, HaveDifferentNames) {
  std::set<std::string_view> names;
  for (Rule r : all_rules()) {
    EXPECT_TRUE(names.insert(rule_name(r)).second) << rule_name(r);
  }
}

// TENON_BLESS=1 writes the page.
TEST(IsaDocument, IsUpToDate) {
  const char* path = "docs/isa.md";
  std::string page = isa_document();
  if (std::getenv("TENON_BLESS")) std::ofstream(path) << page;
  std::ifstream in(path);
  std::string stands{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(stands, page) << "run this test with TENON_BLESS=1 and commit docs/isa.md";
}

}  // namespace
}  // namespace tenon::vm

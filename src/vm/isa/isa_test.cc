#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "vm/isa/isa_document.h"
#include "vm/isa/operand_check.h"

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
    EXPECT_FALSE(rule_text(r).empty());
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

// Pre-decoding: every form of each binary operation gives the same result as its function, and
// decoding an instruction takes time linear in its operands.
#include "vm/interp/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "vm/interp/machine.h"
#include "vm/interp/operand_values.h"
#include "vm/interp/program_testing.h"
#include "vm/isa/code_builder.h"

namespace tenon::vm {
namespace {

// Limits, powers of two and their neighbours; all fit an immediate but the first and the last.
constexpr int64_t kNumbers[] = {
    INT64_MIN, kMinImmediate, -65,           -8,       -3, -1, 0, 1, 2, 5, 62, 63,
    64,        100,           kMaxImmediate, INT64_MAX};

// The operation's result; nullopt for an error.
std::optional<Any> expected(Opcode opcode, int64_t a, int64_t b) {
  const BinaryOperation& operation = binary_operation(opcode);
  int64_t r = 0;
  try {
    if (!operation.compute(a, b, &r)) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  return operation.result == BinaryResult::Boolean ? Any(r != 0) : Any(r);
}

// R[to] := a OPCODE b in each combination of registers and immediates, of %0 and %1.
struct Operand {
  bool immediate;
  int64_t value;
  uint32_t reg;

  Arg arg() const { return immediate ? Arg::imm(value) : Arg::reg(reg); }
};

FunctionUnit function(std::string name, CodeBuilder& b) {
  FunctionUnit f;
  f.name = std::move(name);
  f.params = {{"a", {}}, {"b", {}}};
  f.register_count = 4;
  f.code = b.finish(&f.spans);
  return f;
}

FunctionUnit operation(Opcode opcode, Operand a, Operand b) {
  CodeBuilder code;
  code.emit(opcode, {Arg::reg(2), a.arg(), b.arg()});
  code.emit(Opcode::Ret, {Arg::reg(2)});
  return function("operation", code);
}

// The result is dropped, but errors are still reported.
FunctionUnit dropped(Opcode opcode, Operand a, Operand b) {
  CodeBuilder code;
  code.emit(opcode, {Arg::none(), a.arg(), b.arg()});
  code.emit(Opcode::Ret, {Arg::none()});
  return function("dropped", code);
}

// An `if` on the result: returns (result, whether the branch was taken).
FunctionUnit branch(Opcode opcode, Operand a, Operand b) {
  CodeBuilder code;
  const Label otherwise = code.make_label();
  code.emit(opcode, {Arg::reg(2), a.arg(), b.arg()});
  code.emit(Opcode::If, {Arg::reg(2), code.to(otherwise)});
  code.emit(Opcode::AllocTuple, {Arg::reg(2)}, std::vector{Arg::reg(2), Arg::imm(1)});
  code.emit(Opcode::Ret, {Arg::reg(2)});
  code.bind(otherwise);
  code.emit(Opcode::AllocTuple, {Arg::reg(2)}, std::vector{Arg::reg(2), Arg::imm(0)});
  code.emit(Opcode::Ret, {Arg::reg(2)});
  return function("branch", code);
}

// The same with an addition to the first register before it.
FunctionUnit step(Opcode opcode, int64_t by, Operand b) {
  CodeBuilder code;
  const Label otherwise = code.make_label();
  code.emit(Opcode::Add, {Arg::reg(0), Arg::reg(0), Arg::imm(by)});
  code.emit(opcode, {Arg::reg(2), Arg::reg(0), b.arg()});
  code.emit(Opcode::If, {Arg::reg(2), code.to(otherwise)});
  code.emit(Opcode::AllocTuple, {Arg::reg(2)}, std::vector{Arg::reg(0), Arg::reg(2), Arg::imm(1)});
  code.emit(Opcode::Ret, {Arg::reg(2)});
  code.bind(otherwise);
  code.emit(Opcode::AllocTuple, {Arg::reg(2)}, std::vector{Arg::reg(0), Arg::reg(2), Arg::imm(0)});
  code.emit(Opcode::Ret, {Arg::reg(2)});
  return function("step", code);
}

std::optional<Any> run(FunctionUnit f, int64_t a, int64_t b) {
  Unit unit;
  unit.functions.push_back(std::move(f));
  Machine m(program_of(std::move(unit)));
  try {
    return m.call(0u, std::vector<AnyView>{AnyView(a), AnyView(b)});
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime) << e.render();
    return std::nullopt;
  }
}

std::string text(const std::optional<Any>& value) {
  if (!value) return "error";
  if (const auto* tuple = value->as_object<ArrayObj>()) {
    std::string out;
    for (int64_t i = 0; i < tuple->size; ++i) out += text(Any(tuple->begin()[i])) + " ";
    return out;
  }
  return cat(type_name(value->type_index), " ", value->v.i);
}

class BinaryForms : public testing::TestWithParam<OpcodeInfo> {};

TEST_P(BinaryForms, AgreeWithTheOperation) {
  const Opcode opcode = GetParam().opcode;
  const bool compares = GetParam().op_class == OpClass::Comparison;
  std::mt19937_64 random(1);
  auto number = [&] { return kNumbers[random() % std::size(kNumbers)]; };
  for (int round = 0; round < 60; ++round) {
    const int64_t x = number(), y = number();
    for (bool x_is_immediate : {false, true}) {
      for (bool y_is_immediate : {false, true}) {
        if ((x_is_immediate && !fits_immediate(x)) || (y_is_immediate && !fits_immediate(y))) {
          continue;
        }
        SCOPED_TRACE(
            cat(x, x_is_immediate ? " immediate, " : ", ", y, y_is_immediate ? " immediate" : ""));
        const Operand a{x_is_immediate, x, 0}, b{y_is_immediate, y, 1};
        const std::optional<Any> result = expected(opcode, x, y);
        EXPECT_EQ(text(run(operation(opcode, a, b), x, y)), text(result));
        EXPECT_EQ(text(run(dropped(opcode, a, b), x, y)), result ? "None 0" : "error");
        if (!compares) continue;
        const std::string taken = cat(text(result), " int ", result->v.i, " ");
        EXPECT_EQ(text(run(branch(opcode, a, b), x, y)), taken);
        if (x_is_immediate) continue;
        const int64_t by = static_cast<int64_t>(random() % 7) - 3;
        int64_t sum = 0;
        arithmetic::op_add(x, by, &sum);
        const std::string stepped = text(expected(opcode, sum, y));
        EXPECT_EQ(text(run(step(opcode, by, b), x, y)),
                  cat("int ", sum, " ", stepped, " int ", stepped.back(), " "));
      }
    }
  }
}

std::vector<OpcodeInfo> binary_opcodes() {
  std::vector<OpcodeInfo> out;
  for (const OpcodeInfo& info : all_opcodes()) {
    const bool binary = info.op_class == OpClass::Binary || info.op_class == OpClass::Comparison;
    if (binary && binary_operation(info.opcode).result != BinaryResult::OfFloats) {
      out.push_back(info);
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, BinaryForms, testing::ValuesIn(binary_opcodes()),
                         [](const auto& info) { return std::string(info.param.mnemonic); });

// A list of arguments that counts accesses.
struct CountedArgs {
  std::vector<ValueRef> refs;
  mutable size_t looks = 0;

  size_t size() const { return refs.size(); }
  ValueRef& operator[](size_t i) {
    ++looks;
    return refs[i];
  }
};

TEST(LastUses, OnlyTheLastOperandOfARegisterKeepsOne) {
  std::vector<uint32_t> scratch(3);
  const ValueRef one{nullptr, 1, false}, one_last{nullptr, 1, true}, two_last{nullptr, 2, true};
  std::vector<ValueRef> args = {one_last, two_last, one, one_last, one, two_last};
  keep_last_use_of_each(std::span(args), scratch);
  std::vector<bool> last;
  for (const ValueRef& ref : args) last.push_back(ref.last);
  EXPECT_THAT(last, testing::ElementsAre(false, false, false, false, true, true));
}

// A hostile file has 65536 operands, all the same register, in each instruction.
TEST(LastUses, TakeTimeLinearInTheOperands) {
  std::vector<uint32_t> scratch(2);
  for (size_t n : {1000u, 2000u, 65536u}) {
    CountedArgs args{std::vector<ValueRef>(n, ValueRef{nullptr, 1, true})};
    keep_last_use_of_each(args, scratch);
    EXPECT_LE(args.looks, 3 * n);
    EXPECT_TRUE(args.refs.back().last);
  }
}

// The verifier bounds these lists; the array that they fill also checks its bound.
TEST(Dims, RefuseMoreThanATensorHas) {
  const Any three(int64_t{3});
  std::vector<ValueRef> refs(kMaxRank, ValueRef{&three, 0, false});
  EXPECT_EQ(Dims(refs, nullptr, "a tensor").span().size(), size_t{kMaxRank});
  refs.push_back(refs[0]);
  EXPECT_THAT(failure_of([&] { Dims(refs, nullptr, "a tensor"); }),
              testing::HasSubstr("33 dimensions of a tensor"));
}

}  // namespace
}  // namespace tenon::vm

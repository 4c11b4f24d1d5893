#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object/tensor.h"
#include "support/error.h"
#include "support/error_testing.h"
#include "support/poll.h"
#include "vm/asm/assemble.h"
#include "vm/asm/disassemble.h"
#include "vm/asm/python_text.h"
#include "vm/isa/code_builder.h"
#include "vm/isa/limits.h"

namespace tenon::vm {
namespace {

using testing::HasSubstr;

std::string error_of_text(std::string_view text) {
  try {
    assemble(text, "t.tna");
  } catch (const Error& e) {
    return e.render();
  }
  return "no error";
}

TEST(Assembler, ReadingIsPolledWithinALine) {
  struct PollCount final : Poller {
    void poll() override { ++polls; }
    int polls = 0;
  } count;
  const Poller::Scope scope(&count);
  assemble(";" + std::string(4 * kPollBytes, ';'), "t.tna");
  EXPECT_GE(count.polls, 4);
}

TEST(Assembler, IsToldFromPrograms) {
  EXPECT_TRUE(begins_like_assembly("; text\n\nfunc @f() {\n  ret _\n}\n"));
  EXPECT_TRUE(begins_like_assembly("type t { A, B(i64) }\nfunc @f() -> t {\n  ret %0\n}\n"));
  EXPECT_TRUE(begins_like_assembly("kernel $k\n"));
  EXPECT_FALSE(begins_like_assembly("type t { A, B(i64) }\nfn @f() -> t { A }\n"));
  EXPECT_FALSE(begins_like_assembly("type t {\n  A\n}\n"));
  EXPECT_FALSE(begins_like_assembly("kernel @k() {}\n"));
  EXPECT_FALSE(begins_like_assembly(""));
}

TEST(Assembler, FibReadsAndPrintsAsWritten) {
  const char* text = R"(func @fib(n: i64) -> i64 {
  registers 4
  %1 = lt %0, 2
  if %1, L9
  ret %0!
L9:
  %1 = sub %0, 1
  %2 = sub %0!, 2
  %1 = call @fib, %1!
  %2 = call @fib, %2!
  %0 = add %1!, %2!
  ret %0!
}
)";
  Unit unit = assemble(text);
  ASSERT_EQ(unit.functions.size(), 1u);
  EXPECT_EQ(unit.functions[0].register_count, 4u);
  EXPECT_EQ(disassemble(unit), text);
}

TEST(Assembler, EveryStatementAndOperandReadsBack) {
  const char* text = R"(producer "tenon \"test\""
provenance "{\"source\":\"net.onnx\"}"
library "onednn"
span "net.tn" 12 3 "/conv1" "/relu"
const "w" = tensor[2; i64] {1, -2}  ; #0
const = tensor[1; f32] hex "0000803f"  ; #1
const = "message"  ; #2
const = 9223372036854775807  ; #3
const = true  ; #4
const = float 0.5  ; #5
const = float bits 0x7ff8000000000001  ; #6
const = shape[2, 3]  ; #7
const = dtype f16  ; #8
const = device cpu:0  ; #9
const = tensor[u8] {255}  ; #10
const = none  ; #11
const "late" = late tensor[2; f32]  ; #12
const "unaligned" = late tensor[2, 3; i8] align 1  ; #13
packed $"host.a b"
packed reads $cache
packed pure $host.sum
kernel $fused_add
target "x86_64" "haswell" {"avx2", "fma"}
image elf hex "7f454c46"
image ptx "sm_80" hex "2e"
image "opencl-c" hex ""
target "aarch64" "cortex-a76" {}
computes "two\nlines, \"quoted\""
graph "{\"version\": 1}"

func @main(x: tensor[n, 3; f32], "in:1": any) -> (tensor[n, 3; f32], i64) {
  registers 8
  results "y", "count"
  at 0
  match_tensor %0, f32, ->%2, =3, *, =%2
  %3 = alloc_storage %2, 64, cpu:0
  %4 = alloc_tensor %3!, 0, f32, %2, 3
  _ = call_packed $fused_add, %0, #0, %4, -7, _
  %5 = call_packed $"host.a b"
  switch %2, L43, 0: L43, 1: L41
L41:
  fatal #2
L43:
  kill %0, %1
  read_elements %4, %5, _
  ret %4!
}

local func @f() -> any {
  registers 0
  tail_call @main, 1, 2
}
)";
  EXPECT_EQ(disassemble(assemble(text)), text);
}

TEST(Assembler, DamagedCodeReadsBackWordByWord) {
  Unit unit = assemble("func @f() {\n .word 0xffff\n goto L+99\n .word 0x2\n}\n");
  std::string text = disassemble(unit);
  EXPECT_THAT(text, HasSubstr(".word 0xffff"));
  EXPECT_THAT(text, HasSubstr("goto L+99"));
  EXPECT_EQ(assemble(text).functions[0].code, unit.functions[0].code);
}

TEST(Assembler, RegistersThatNoFrameHasReadBackAsWords) {
  Unit unit = assemble("func @f() {\n ret %5\n}");
  unit.functions[0].code[1] = Arg::reg(kMaxRegisters).word;
  std::string text = disassemble(unit);
  EXPECT_THAT(text, HasSubstr(".word"));
  EXPECT_EQ(assemble(text).functions[0].code, unit.functions[0].code);
}

TEST(Assembler, AnErrorPointsAtItsPlace) {
  EXPECT_EQ(error_of_text("func @f(n: i64) {\n  %1 = addd %0, 1\n}\n"),
            "error: t.tna:2:8: unknown instruction 'addd'\n"
            "  where       %1 = addd %0, 1\n"
            "                   ^");
}

TEST(Assembler, RefusesWhatItCannotEncode) {
  EXPECT_THAT(error_of_text("func @f() {\n ret %70000\n}"),
              HasSubstr("the register's number is too large"));
  EXPECT_THAT(error_of_text("func @f() {\n ret 99999999999999999\n}"), HasSubstr("56 bits"));
  EXPECT_THAT(error_of_text("func @f() {\n goto nowhere\n}"), HasSubstr("no label 'nowhere'"));
  EXPECT_THAT(error_of_text("func @f() {\n ret 1, 2\n}"), HasSubstr("end of the line"));
  EXPECT_THAT(error_of_text("func @f() {\n %0 = ret 1\n}"), HasSubstr("'ret' has no result"));
  EXPECT_THAT(error_of_text("func @f() {\n add 1, 2\n}"), HasSubstr("'add' has a result"));
  EXPECT_THAT(error_of_text("func @f() {\n %0 = add 1\n}"), HasSubstr("'add' needs 'b'"));
  EXPECT_THAT(error_of_text("func @f() {\n if #0, a\n}"), HasSubstr("doesn't accept #0"));
  EXPECT_THAT(error_of_text("func @f() {\n %0 = call @g\n}"), HasSubstr("no function named 'g'"));
  EXPECT_THAT(error_of_text("func @f() {\n a:\n a:\n}"), HasSubstr("twice"));
  EXPECT_THAT(error_of_text("func @f() {\n"), HasSubstr("isn't closed"));
  EXPECT_THAT(error_of_text("func @f(x: tensor[2) {\n}"), HasSubstr("not a type"));
  EXPECT_THAT(error_of_text("const = tensor[3; i8] {1, 2}"), HasSubstr("3 elements"));
  EXPECT_THAT(error_of_text("const = tensor[1; i8] {200}"), HasSubstr("doesn't fit"));
  EXPECT_THAT(error_of_text("const = tensor[9; f32] elided"), HasSubstr("elided when"));
  EXPECT_THAT(error_of_text("const = tensor[99999999999, 99999999999; f32] hex \"\""),
              HasSubstr("too large"));
  EXPECT_THAT(error_of_text("const = \"a"), HasSubstr("closing double quote"));
  EXPECT_THAT(error_of_text("const = tensor[1; i8] hex \"00ff\""),
              HasSubstr("2 hexadecimal digits"));
  for (const char* bytes : {"0", "0g"}) {
    const std::string line = cat("image elf hex \"", bytes, "\"");
    EXPECT_THAT(error_of_text(cat("target \"t\" \"c\" {}\n", line)),
                HasSubstr("t.tna:2:15: invalid bytes"));
    EXPECT_THAT(error_of_text(cat("const = tensor[1; i8] hex \"", bytes, "\"")),
                HasSubstr("pairs of hexadecimal digits"));
  }
  EXPECT_THAT(error_of_text("nonsense"), HasSubstr("producer, provenance, library"));
}

TEST(CodeBuilder, MakesWhatTheAssemblerMakes) {
  CodeBuilder b;
  Label end = b.make_label();
  const DimPattern dims[] = {DimPattern::store(1), DimPattern::equals(3),
                             DimPattern::equals_register(1), DimPattern::ignore()};
  b.emit(Opcode::MatchTensor, {Arg::reg(0), Arg::dtype(f32)}, dim_operands(dims));
  b.emit(Opcode::If, {Arg::reg(1), b.to(end)});
  b.emit(Opcode::LoadInt, {Arg::reg(2), Arg::imm(-7)});
  b.bind(end);
  b.emit(Opcode::Ret, {Arg::last(0)});
  std::vector<CodeSpan> spans;
  std::vector<Word> code = b.finish(&spans);
  Unit text = assemble(
      "func @f(x: any) {\n match_tensor %0, f32, ->%1, =3, =%1, *\n if %1, e\n"
      " %2 = load_int -7\ne:\n ret %0!\n}");
  EXPECT_EQ(code, text.functions[0].code);
}

TEST(CodeBuilder, RefusesOperandsOfTheWrongKind) {
  CodeBuilder b;
  EXPECT_THROW(b.emit(Opcode::If, {Arg::constant(1), Arg::label(0)}), Error);
  EXPECT_THROW(b.emit(Opcode::Add, {Arg::reg(1), Arg::reg(0)}), Error);
  EXPECT_THROW(b.emit(Opcode::NewTensor, {Arg::reg(1), Arg::device({kDLCUDA, 0}), Arg::dtype(f32)}),
               Error);
}

TEST(Signature, TextReadsBack) {
  for (const char* text : {"any",
                           "i64",
                           "bool",
                           "bf16",
                           "tensor[n, 3, floordiv(n, 2) + 1; f32]",
                           "tensor[i8]",
                           "tensor[rank=4; f16]",
                           "tensor[*; f32]",
                           "shape[n, 4]",
                           "shape[rank=2]",
                           "shape[*]",
                           "(i64, (tensor[2; f32], bool))",
                           "()",
                           "(i64,)",
                           "fn(i64, any) -> array[i64]",
                           "list[i64]",
                           "tree",
                           "opaque[\"a.b\"]",
                           "opaque[\"a\\\"b\\\\\"]",
                           "tensor[\"a,b\", 2*\"c]d\", \"(e\"; i8]"}) {
    EXPECT_EQ(to_text(parse_signature_type(text)), text);
    const std::string function = cat("func @f(x: ", text, ") -> ", text, " {\n  ret %0\n}\n");
    EXPECT_THAT(disassemble(assemble(function, "t")), HasSubstr(cat("(x: ", text, ") -> ", text)));
  }
}

TEST(DataType, TextRoundTrips) {
  for (const char* text : {"color { Red, Green }", "tree[T] { Leaf, Node(tree[T], T, tree[T]) }",
                           "pair[A, B] { Pair(A, tensor[n, 2; f32], fn(A) -> B) }"}) {
    EXPECT_EQ(to_text(parse_adt_signature(text)), text);
    const Unit unit = assemble(cat("type ", text, "\n"), "t");
    ASSERT_EQ(unit.types.size(), 1u);
    EXPECT_EQ(disassemble(unit), cat("type ", text, "\n"));
  }
}

TEST(DataType, WrongTextIsRefused) {
  for (const char* text : {"", "tree", "tree {}", "tree[] { Leaf }", "tree[T] { Leaf",
                           "tree { Leaf } x", "tree { Leaf(tensor) }", "tree { Leaf, }"}) {
    EXPECT_THROW(parse_adt_signature(text), Error) << text;
    EXPECT_THROW(assemble(cat("type ", text, "\n"), "t"), Error) << text;
  }
}

TEST(DataType, FieldsHaveTheTypesOfTheArguments) {
  const AdtSignature tree = parse_adt_signature("tree[T] { Leaf, Node(tree[T], T, (T, list[T])) }");
  const auto fields =
      field_types(tree, tree.constructors[1], parse_signature_type("tree[tensor[2; f32]]"));
  ASSERT_EQ(fields.size(), 3u);
  EXPECT_EQ(to_text(fields[0]), "tree[tensor[2; f32]]");
  EXPECT_EQ(to_text(fields[2]), "(tensor[2; f32], list[tensor[2; f32]])");
  // As many arguments as a host's type happens to have.
  EXPECT_EQ(to_text(field_types(tree, tree.constructors[1], parse_signature_type("tree"))[1]), "T");
  EXPECT_EQ(
      to_text(field_types(tree, tree.constructors[1], parse_signature_type("tree[i64, i64]"))[0]),
      "tree[i64]");
}

TEST(DataType, FieldsOfEverLargerTypesAreRefused) {
  const AdtSignature t = parse_adt_signature("t[T] { A, B(t[(T, T)]) }");
  SignatureType type = parse_signature_type("t[i64]");
  EXPECT_THAT(failure_of([&] {
                for (;;) type = field_types(t, t.constructors[1], type)[0];
              }),
              HasSubstr("the type of a value's part is too large"));
  EXPECT_GT(parts_of(type), kMostTypeParts / 4);
}

TEST(Signature, ATensorOfRankZeroNeedsNoSemicolon) {
  EXPECT_EQ(to_text(parse_signature_type("tensor[ i8 ]")), "tensor[i8]");
  EXPECT_EQ(to_text(parse_signature_type("tensor[; i8]")), "tensor[i8]");
}

TEST(Signature, WrongTextIsRefusedWithItsColumn) {
  for (const char* text : {"", "tensor", "tensor[2]", "tensor[2; x9]", "tensor[2,; f32]", "(i64",
                           "i64 i64", "fn(i64)", "shape[rank=99]", "array[]", "opaque[x]",
                           "opaque[\"a]", "opaque[\"a\\\"]", "tensor[\"a; i8]", "tensor[3; i8x16]",
                           "tensor[3; void]", "tensor[void]", "tensor[2; i3]"}) {
    EXPECT_THROW(parse_signature_type(text), Error) << text;
  }
  std::string deep(200, '(');
  EXPECT_THROW(parse_signature_type(deep), Error);
  std::string wide = "(";
  for (int i = 0; i < 70'000; ++i) wide += "a,";
  EXPECT_THAT(failure_of([&] { parse_signature_type(wide + "a)"); }), HasSubstr("65536 parts"));
}

TEST(PythonText, HasAStatementForEachInstruction) {
  const std::string text = python_text(assemble(R"(
const "w" = tensor[2; i64] {1, 2}
packed $"host.log"
kernel $scale
func @while(x: tensor[n, 2; f32], k: i64) -> i64 {
  match_tensor %0, f32, ->%2, =2
  match_shape %0, =%2, *
  %3 = call_packed $scale, %0, %2
  _ = call_packed $"host.log", #0
  kill %3
again:
  if_eq %1, 3, done
  %1 = sub %1, 1
  %4 = not %1
  if %4, again
  switch %1, done, 0: again, 7: done
done:
  tail_call @while, %0!, %1
}
)"));
  EXPECT_THAT(text, testing::HasSubstr(R"(
c0 = constant("w", "tensor[2; i64] {1, 2}")


def while_(r0: "x: tensor[n, 2; f32]", r1: "k: i64") -> "i64":
    at = 0
    while True:
        match at:
            case 0:
                r2 = match_tensor(r0, "f32", size, 2)
                match_shape(r0, r2, ...)
                r3 = kernels["scale"](r0, r2)
                packed["host.log"](c0)
                r3 = None
)"));
  EXPECT_THAT(text, testing::HasSubstr(R"(
                if r1 != 3:
                    at = )"));
  EXPECT_THAT(text, testing::HasSubstr("r4 = not_(r1)\n"));
  EXPECT_THAT(text, testing::ContainsRegex(R"(at = \{0: [0-9]+, 7: [0-9]+\}\.get\(r1, [0-9]+\)
                continue
)"));
  EXPECT_THAT(text, testing::HasSubstr("return while_(r0, r1)\n"));
}

}  // namespace
}  // namespace tenon::vm

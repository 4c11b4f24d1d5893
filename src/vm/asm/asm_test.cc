#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

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

struct BadText {
  const char* text;
  const char* message;   // with its place in the text
  const char* expected;  // the text of that row, or ""
};
void expect_errors(std::span<const BadText> cases, std::string_view before = "",
                   std::string_view after = "") {
  for (const auto& [text, message, expected] : cases) {
    const std::string error = error_of_text(cat(before, text, after));
    EXPECT_THAT(error, HasSubstr(message)) << text;
    EXPECT_THAT(error, HasSubstr(expected)) << text;
  }
}

TEST(Assembler, EachBadStatementIsNamed) {
  constexpr BadText kCases[] = {
      {"local fn", "t.tna:1:7: this line is not assembly", "'func'"},
      {"packed x", "this line is not assembly", "'$'"},
      {"func @(", "this line is not assembly", "a name"},
      {"library x", "this line is not assembly", "a string in double quotes"},
      {"library \"x\" y", "unexpected text after the statement", "the end of the line"},
      {"library \"x", "the string isn't closed", "a closing double quote"},
      {"library \"x\\", "the string isn't closed", "a closing double quote"},
      {"library \"\\q\"", "not an escape", "\\n \\t \\r \\\" \\\\ or \\x and two digits"},
      {"library \"\\x1g\"", "not an escape", "two hexadecimal digits after \\x"},
      {"library \"\\x1", "not an escape", "two hexadecimal digits after \\x"},
      {"span \"a.tn\" x 1", "this line is not assembly", "an integer"},
      {"span \"a.tn\" 99999999999999999999 1", "the number doesn't fit 64 bits", "an integer"},
      {"span \"a.tn\" 9223372036854775808 1", "the number doesn't fit 64 bits", "a signed integer"},
      {"type t { A(", "not a type", "NAME[T] { CONSTRUCTOR, CONSTRUCTOR(TYPE, TYPE) }"},
      {"image elf hex \"\"", "an image belongs to a target", "a line 'target' above"},
      {"func @f(x: opaque[\"a) {", "the string isn't closed", "a closing double quote"},
  };
  expect_errors(kCases);
  constexpr BadText kImages[] = {
      {"image exe hex \"\"", "t.tna:2:7: unknown kind of image 'exe'", "elf"},
      {"image elf \"x\"", "the image's bytes are missing", "hex \"...\""},
  };
  expect_errors(kImages, "target \"t\" \"c\" {}\n");
}

TEST(Assembler, EachBadConstantIsNamed) {
  constexpr BadText kCases[] = {
      {"what", "not a constant", "a number, string, float, shape, tensor, dtype or device"},
      {"9223372036854775808", "the number doesn't fit 64 bits", "a signed integer"},
      {"-9223372036854775809", "the number doesn't fit 64 bits", "a signed integer"},
      {"float 1.x", "not a number", "a float"},
      {"float", "not a number", "a float"},
      {"dtype f99", "not an element type", "a dtype such as f32, i64 or bool"},
      {"device moon:0", "not a device", "a device such as cpu:0"},
      {"device cpu:16777216", "not a device", "a device such as cpu:0"},
      {"shape[1, x]", "this line is not assembly", "an integer"},
      {"tensor[", "not a type", "a tensor type"},
      {"tensor[n; i8] {1}", "a constant's dimensions must be numbers", "a number"},
      {"tensor[*; i8] {1}", "a constant can't have this type",
       "a tensor with numbers for dimensions"},
      {"tensor[2; i8] {1}", "the elements don't fit the shape", "2 elements"},
      {"tensor[1; u8] {-1}", "this element doesn't fit the tensor's type", "u8"},
      {"tensor[1; i32] {2147483648}", "this element doesn't fit the tensor's type", "i32"},
      {"tensor[1; f32] {1}", "this element doesn't fit the tensor's type", "f32"},
      {"tensor[2; string] {\"a\"}", "the elements don't fit the shape", "2 strings"},
      {"tensor[1; string] {}", "the elements don't fit the shape", "1 strings"},
      {"tensor[1; string] {\"\\xff\"}", "this string is not valid UTF-8", "UTF-8"},
      {"late tensor[n; i8]", "a constant's dimensions must be numbers", "a number"},
      {"late tensor[1; i8] align 99999999", "the alignment is too large", "at most "},
  };
  expect_errors(kCases, "const = ");
}

TEST(Assembler, EachBadLineOfAFunctionIsNamed) {
  constexpr BadText kCases[] = {
      {"registers 4294967296", "the frame is too large", "at most 65536"},
      {"at 4294967296", "not a span", "at most "},
      {"a:\n a:", "t.tna:3:2: label 'a' is defined twice", "each label once"},
      {"goto a\n a:", "no instruction follows the label 'a' in @f", "such as ret"},
      {"goto a", "no label 'a' in @f", "a label in this function"},
      {"goto L+4294967296", "not a word offset", ""},
      {"%0 = call @g", "no function named 'g'", "one that this file declares"},
      {"%0 = call @4294967296", "no function has this number", ""},
      {"_ = call_packed $g", "no packed function named 'g'", "one that this file declares"},
      {"_ = call_packed $4294967296", "no packed function has this number", ""},
      {"ret #4294967296", "no constant has this number", ""},
      {"ret 36028797018963968", "the integer doesn't fit an operand", "load_const"},
      {"ret x", "not an operand for 'value'", ""},
      {"if #0, a", "'if' doesn't accept #0", ""},
      {"match_shape %0, x", "not a dimension pattern", "*, =3, =%1 or ->%1"},
      {"match_tensor %0, f99", "not an element type", "a dtype such as f32, i64 or bool"},
  };
  expect_errors(kCases, "func @f(x: any) {\n ", "\n}");
}

TEST(Assembler, ElementsAndEscapesOfEveryKindReadBack) {
  for (const char* constant :
       {"tensor[2; i16] {-32768, 32767}", "tensor[2; u16] {0, 65535}",
        "tensor[2; i32] {-2147483648, 2147483647}", "tensor[1; u32] {4294967295}",
        "tensor[1; u64] hex \"ffffffffffffffff\"", "tensor[0; i8] hex \"\"",
        "tensor[2; string] {\"a\", \"b \\\"c\\\"\"}", "tensor[0; string] {}", "false", "float inf",
        "-9223372036854775808", "shape[]", "\"\\t\\r\\n\\\\ \\x01\""}) {
    const std::string text = cat("const = ", constant, "  ; #0\n");
    const std::string printed = disassemble(assemble(text, "t"));
    EXPECT_EQ(disassemble(assemble(printed, "t")), printed);
    EXPECT_THAT(printed, HasSubstr(constant));
  }
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

TEST(Signature, AnErrorSaysWhatIsExpected) {
  const std::string open(130, '(');
  const std::string long_text(1'048'577, ' ');
  const std::pair<std::string, const char*> cases[] = {
      {"", "a type"},
      {"i64 i64", "the end of the type"},
      {"tensor", "'['"},
      {"tensor[2; x9]", "an element type"},
      {"tensor[2,; f32]", "a dimension"},
      {"tensor[a\tb; f32]", "a dimension without control characters"},
      {"tensor[rank=33; f32]", "a rank of at most 32"},
      {"tensor[rank=-1; f32]", "a rank of at most 32"},
      {"shape[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
       "at most 32 dimensions"},
      {"opaque[x]", "a name in quotes"},
      {"opaque[\"x", "a closing quote"},
      {"opaque[\"x\ty\"]", "a name without control characters"},
      {open, "nesting of at most 128"},
      {long_text, "at most 1048576 bytes"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(failure_of([&, &text = text] { parse_signature_type(text); }), HasSubstr(expected))
        << text.substr(0, 80);
  }
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

TEST(PythonText, WritesEveryKindOfOperand) {
  const std::string text = python_text(assemble(R"(
func @empty() {
}
func @f(x: tensor[n; f32], n: i64) -> any {
  match_shape %0, =%1
  %2 = alloc_storage %1, 64, cpu:0
  %3 = move %1
  goto next
next:
  ret _
}
)"));
  for (const char* line :
       {"def empty() -> \"any\":\n    pass\n", "match_shape(r0, r1)\n",
        "r2 = alloc_storage(r1, 64, \"cpu:0\")\n", "continue\n", "return None\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(PythonText, CodeThatNothingVerifiedIsShown) {
  EXPECT_THAT(python_text(assemble("func @f() {\n .word 0xffff\n}\n")),
              HasSubstr("raise SystemError(\"no instruction at word 0\")"));
  EXPECT_THAT(
      python_text(assemble("func @f() {\n %0 = call @7\n _ = call_packed $7\n ret %0\n}\n")),
      testing::AllOf(HasSubstr("r0 = None()"), HasSubstr("    None()\n")));
}

}  // namespace
}  // namespace tenon::vm

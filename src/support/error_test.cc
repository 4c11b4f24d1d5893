#include "support/error.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Error, RendersATable) {
  Error e(ErrorKind::Unsupported, "yolo.onnx: 2 of 412 nodes cannot be imported (opset 17)");
  e.table({"node", "operator", "reason"});
  e.table({"/head/nms", "NonMaxSuppression", "not implemented"});
  e.table({"/up/0", "Resize", "antialias=1 not implemented"});
  e.help("`tenon ops` lists what is supported; nothing was written");
  EXPECT_EQ(e.render(),
            "error: yolo.onnx: 2 of 412 nodes cannot be imported (opset 17)\n"
            "  node       operator           reason\n"
            "  /head/nms  NonMaxSuppression  not implemented\n"
            "  /up/0      Resize             antialias=1 not implemented\n"
            "  help: `tenon ops` lists what is supported; nothing was written");
}

TEST(Error, RendersRowsWithNotesInAColumn) {
  Error e(ErrorKind::Usage, "input 'attention_mask' does not fit bert.tnx");
  e.expected("tensor[batch=2, seq=32; i64]", "bound by 'input_ids'");
  e.found("tensor[2, 48; i64]", "mask.npy, axis 1");
  e.help("give both inputs the same seq; see `tenon inspect bert.tnx`");
  EXPECT_EQ(e.render(),
            "error: input 'attention_mask' does not fit bert.tnx\n"
            "  expected  tensor[batch=2, seq=32; i64]   bound by 'input_ids'\n"
            "  found     tensor[2, 48; i64]             mask.npy, axis 1\n"
            "  help: give both inputs the same seq; see `tenon inspect bert.tnx`");
}

TEST(Error, RendersAddedErrorsAfterItself) {
  Error e(ErrorKind::Usage, Span::at("a.tn", 3), "first");
  e.help("mend it").also(Error(ErrorKind::Damaged, "second").found("x"));
  const Error copy = e;
  e.also(Error(ErrorKind::Usage, "third"));
  EXPECT_EQ(e.kind(), ErrorKind::Usage);
  EXPECT_EQ(e.message(), "first");
  EXPECT_EQ(e.render(),
            "error: a.tn:3: first\n"
            "  help: mend it\n"
            "error: second\n"
            "  found     x\n"
            "error: third");
  EXPECT_EQ(copy.render(), "error: a.tn:3: first\n  help: mend it\nerror: second\n  found     x");
  std::string rows;
  for (const Error::Row& row : e.all_rows()) rows += cat(row.label, "=", row.text, " ");
  EXPECT_EQ(rows, "span=a.tn:3 help=mend it error=second found=x error=third ");
}

TEST(Error, RendersRowsWithoutNotes) {
  Error e(ErrorKind::Damaged, "m.tnx failed verification; nothing was run");
  e.where("code, function 'main', instruction 17, byte 0x1a40");
  e.found("operand 2 reads r912");
  e.expected("a register below 24, the frame size");
  e.rule("register-range, docs/isa.md");
  e.help("compile it again, or compare checksums with its sender");
  EXPECT_EQ(e.render(),
            "error: m.tnx failed verification; nothing was run\n"
            "  where     code, function 'main', instruction 17, byte 0x1a40\n"
            "  found     operand 2 reads r912\n"
            "  expected  a register below 24, the frame size\n"
            "  rule      register-range, docs/isa.md\n"
            "  help: compile it again, or compare checksums with its sender");
}

TEST(Error, RendersSpanBacktraceAndLines) {
  Error e(ErrorKind::Runtime, Span::at("fib.tn", 3, 7), "division by zero");
  e.found("first\nsecond").frame("fib, fib.tn:3, instruction 4").frame("main, fib.tn:9");
  EXPECT_EQ(e.render(),
            "error: fib.tn:3:7: division by zero\n"
            "  found     first\n"
            "            second\n"
            "  at fib, fib.tn:3, instruction 4\n"
            "  at main, fib.tn:9");
}

TEST(Error, EscapesWhatATerminalWouldObey) {
  Error e(ErrorKind::Usage, "no node '\x1b[31mred'");
  EXPECT_EQ(e.render(), "error: no node '\\x1b[31mred'");
}

TEST(Error, AlignsTextThatIsNotAscii) {
  Error e(ErrorKind::Usage, "m");
  e.found("é", "a").expected("bb", "c");
  EXPECT_EQ(e.render(), "error: m\n  found     é    a\n  expected  bb   c");
}

TEST(Error, TellsItsExitCode) {
  EXPECT_EQ(Error(ErrorKind::Usage, "").exit_code(), 2);
  EXPECT_EQ(Error(ErrorKind::Unsupported, "").exit_code(), 3);
  EXPECT_EQ(Error(ErrorKind::Damaged, "").exit_code(), 4);
  EXPECT_EQ(Error(ErrorKind::Runtime, "").exit_code(), 5);
  EXPECT_EQ(Error(ErrorKind::Internal, "").exit_code(), 70);
}

TEST(Error, KindsHaveNamesBothWays) {
  for (auto k : {ErrorKind::Usage, ErrorKind::Unsupported, ErrorKind::Damaged, ErrorKind::Runtime,
                 ErrorKind::Internal}) {
    EXPECT_EQ(kind_of_name(kind_name(k)), k);
  }
  EXPECT_EQ(kind_of_name("ValueError"), ErrorKind::Runtime);
}

TEST(Error, WhatIsTheRenderedText) {
  Error e(ErrorKind::Usage, "m");
  EXPECT_STREQ(e.what(), "error: m");
  e.help("h");
  EXPECT_STREQ(e.what(), "error: m\n  help: h");
}

TEST(Error, AFailedAssertionIsInternalAndNamesItsPlace) {
  TENON_ASSERT(true);
  try {
    TENON_ASSERT(1 + 1 == 3, "sum is ", 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Internal);
    EXPECT_EQ(e.message(), "sum is 2");
    EXPECT_NE(e.render().find("internal error: sum is 2\n  assertion  1 + 1 == 3\n"),
              std::string::npos)
        << e.render();
    EXPECT_NE(e.render().find("error_test.cc:"), std::string::npos);
  }
}

TEST(Error, AChangeToACopyLeavesTheOthers) {
  Error first(ErrorKind::Runtime, "broken");
  Error second = first;
  EXPECT_STREQ(second.what(), "error: broken");
  second.frame("main").found("x").help("mend it");
  second.at(Span::at("a.tn", 4)).table({"cell"});
  EXPECT_STREQ(first.what(), "error: broken");
  EXPECT_EQ(first.backtrace().size(), 0u);
  EXPECT_STRNE(second.what(), first.what());
}

TEST(Span, PrintsFileAndNodes) {
  EXPECT_EQ(to_text(Span()), "");
  EXPECT_EQ(to_text(Span::at("a.tn", 4)), "a.tn:4");
  EXPECT_EQ(to_text(Span::node("/conv1")), "/conv1");
  Span both = Span::merge(Span::at("a.tn", 4), Span::node("/conv1"));
  EXPECT_EQ(to_text(both), "a.tn:4 (/conv1)");
}

TEST(Span, MergesNodesOnceAndShortensMany) {
  Span s = Span::merge(Span::node("a"), Span::node("a"));
  EXPECT_EQ(to_text(s), "a");
  for (char c = 'b'; c <= 'i'; ++c) s = Span::merge(s, Span::node(std::string(1, c)));
  EXPECT_EQ(to_text(s), "a, b, c, d, e, f and 3 more");
}

}  // namespace
}  // namespace tenon

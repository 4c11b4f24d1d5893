#include "driver/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_testing.h"
#include "vm/executable/write_file.h"

namespace tenon::driver {
namespace {

constexpr char kProgram[] = "fn @main(%n: i64) -> i64 { add(%n, 1) }\n";
constexpr char kAssembly[] = "; a comment\nfunc @main(n: i64) -> i64 {\n  ret %0\n}\n";

TEST(Open, ContentCountsBeforeTheName) {
  EXPECT_EQ(source_of(kProgram, "p.onnx").kind, SourceKind::Program);
  EXPECT_EQ(source_of(kAssembly, "p.tn").kind, SourceKind::Assembly);
  EXPECT_EQ(source_of("kernel reads $f\n", "p.tn").kind, SourceKind::Assembly);
  EXPECT_EQ(source_of("kernel @f() {}\n", "p.tna").kind, SourceKind::Program);
  const std::string executable = vm::write_to_bytes(read_code(source_of(kAssembly, "a")));
  EXPECT_EQ(source_of(executable, "p").kind, SourceKind::Executable);
  EXPECT_EQ(source_of("\x08\x07", "p.tn").kind, SourceKind::Model);
}

TEST(Open, NameCountsWhereTheContentSaysNothing) {
  EXPECT_EQ(source_of("", "p.onnx").kind, SourceKind::Model);
  EXPECT_EQ(source_of("what", "p.tn").kind, SourceKind::Program);
  EXPECT_EQ(source_of("what", "p.tna").kind, SourceKind::Assembly);
  EXPECT_EQ(source_of("what", "p.tnx").kind, SourceKind::Executable);
  EXPECT_THAT(failure_of([] { source_of("what", "p.txt"); }),
              testing::HasSubstr("is not a file that Tenon can read"));
}

TEST(Open, ReadsTheModuleOfAGraphAndTheCodeOfTheRest) {
  EXPECT_TRUE(read_module(source_of(kProgram, "p"))->functions.contains("main"));
  EXPECT_EQ(read_code(source_of(kAssembly, "p")).functions.size(), 1u);
  EXPECT_THAT(failure_of([] { read_module(source_of(kAssembly, "p")); }),
              testing::HasSubstr("holds no graph"));
  EXPECT_THAT(failure_of([] { read_code(source_of(kProgram, "p")); }),
              testing::HasSubstr("is not compiled"));
  EXPECT_THAT(failure_of([] { read_model(source_of(kProgram, "p")); }),
              testing::HasSubstr("is not an ONNX model"));
}

}  // namespace
}  // namespace tenon::driver

#include "driver/provenance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/error_testing.h"

namespace tenon::driver {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kProgram[] = "fn @main(%n: i64) -> i64 { add(%n, 1) }\n";

CompileOptions options() {
  CompileOptions out;
  out.cpu = {"x86-64-v3"};
  return out;
}

TEST(Provenance, NamesTheSourceTheSizesAndTheOptions) {
  onnx::ImportOptions import;
  import.dims["batch"] = 2;
  import.shapes["x"] = {2, 3};
  CompileOptions compile = options();
  compile.origin = origin_of(source_of(kProgram, "some/folder/p.tn"), import);
  const std::string record = provenance_of(compile);
  EXPECT_THAT(provenance_lines(record),
              ElementsAre(testing::MatchesRegex("made from p.tn, 40 bytes, xxh64 [0-9a-f]{16}"),
                          "with the sizes batch=2, x=2x3", "compiled with -O2 for x86-64-v3"));
  EXPECT_EQ(record, provenance_of(compile));
  const auto dims = provenance_data(record).at("dims").as<Map<String, int64_t>>();
  EXPECT_EQ(dims.at("batch"), 2);
}

TEST(Provenance, HasEveryOptionThatIsNotTheDefault) {
  CompileOptions compile = options();
  compile.passes = {"simplify", "fuse"};
  compile.fold_limit = 5;
  compile.keep_computes = true;
  compile.threads = 2;
  const std::string record = provenance_of(compile);
  EXPECT_THAT(provenance_lines(record),
              ElementsAre("compiled with -O2 for x86-64-v3, without libraries",
                          "with keep_computes, fold_limit 5, passes simplify, fuse"));
  EXPECT_EQ(provenance_data(record).at("fold_limit").as<int64_t>(), 5);
  EXPECT_FALSE(provenance_data(record).contains("threads"));
}

TEST(Provenance, OfAModuleWithoutAFileHasNoSource) {
  CompileOptions compile = options();
  compile.libraries = "none";
  EXPECT_THAT(provenance_lines(provenance_of(compile)),
              ElementsAre("compiled with -O2 for x86-64-v3, without libraries"));
  EXPECT_EQ(read_code(source_of("func @f() -> i64 {\n ret 1\n}\n", "a")).provenance, "");
}

TEST(Provenance, AnOriginIsAnObject) {
  CompileOptions compile = options();
  for (const char* origin : {"[]", "1"}) {
    compile.origin = origin;
    EXPECT_THAT(failure_of([&] { provenance_of(compile); }),
                testing::HasSubstr("option origin is not an object of JSON"));
  }
}

// Else a file's record could have two members of a name, and nobody could read it.
TEST(Provenance, AnOriginHasItsOwnMembersOnly) {
  CompileOptions compile = options();
  compile.origin = "{\"source\": \"x\", \"level\": 7}";
  EXPECT_EQ(failure_of([&] { provenance_of(compile); }),
            "error: option origin has a member \"level\" that no origin has\n"
            "  found     {\"source\": \"x\", \"level\": 7}\n"
            "  expected  what tenon.origin returns");
}

TEST(Provenance, MembersOfAnOriginHaveTheirTypes) {
  CompileOptions compile = options();
  const std::string good =
      R"({"source":"x.onnx","bytes":3,"xxh64":"0f","dims":{"n":4},"shapes":{"x":[1,3]}})";
  compile.origin = good;
  EXPECT_THAT(provenance_lines(provenance_of(compile)),
              testing::Contains("with the sizes n=4, x=1x3"));
  const std::pair<const char*, const char*> changes[] = {
      {R"("x.onnx")", "5"},  {"3,", "-3,"},       {R"("0f")", "{}"}, {R"({"n":4})", R"({"n":"x"})"},
      {R"({"n":4})", "[4]"}, {"[1,3]", "[true]"}, {"[1,3]", "3"},
  };
  for (const auto& [from, to] : changes) {
    compile.origin = good;
    compile.origin.replace(good.find(from), std::strlen(from), to);
    EXPECT_THAT(failure_of([&] { provenance_of(compile); }),
                testing::HasSubstr("option origin has a member "))
        << compile.origin;
  }
  compile.origin = " {} ";
  EXPECT_THAT(failure_of([&] { provenance_of(compile); }),
              testing::HasSubstr("option origin is incomplete"));
}

TEST(Provenance, OfAStrangersFileMayBeAnything) {
  for (const char* record : {"", "{", "[1]", "null", "{\"source\":1,\"level\":\"x\",\"dims\":[]}",
                             "{\"source\":{\"a\":{\"b\":{\"c\":{\"d\":1}}}}}"}) {
    EXPECT_THAT(provenance_lines(record), IsEmpty()) << record;
  }
  EXPECT_THAT(provenance_lines("{\"source\":\"x\",\"bytes\":-1,\"shapes\":{\"y\":true}}"),
              ElementsAre("made from x"));
}

}  // namespace
}  // namespace tenon::driver

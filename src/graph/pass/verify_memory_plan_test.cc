#include "graph/pass/verify_memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/text.h"
#include "graph/op/register.h"

namespace tenon::graph {
namespace {

using testing::HasSubstr;

// The verifier's error for the program, or "".
std::string verdict(const std::string& text) {
  register_graph_types();
  register_operators();
  try {
    verify_memory_plan(parse_module(text, "plan.tn"));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Verifies a module whose main has two tensors in one storage; `middle` lies between their
// bindings.
std::string verified(const std::string& middle, int offset_of_b) {
  const std::string text = cat(R"(
    fn @use(%x: tensor[4; f32]) -> tensor[4; f32] { %x }
    fn @main(%c: bool) -> tensor[4; f32] {
      %s = packed "memory.storage"(size=dim(128)) -> opaque["storage"]
      %a = packed "memory.tensor"(%s, offset=dim(0), shape=[dim(4)]) -> tensor[4; f32]
      )",
                               middle, R"(
      %b = packed "memory.tensor"(%s, offset=dim()",
                               offset_of_b, R"(), shape=[dim(4)]) -> tensor[4; f32]
      %r = packed "test.read"(%b, no_retain=true) -> tensor[4; f32]
      %q = @use(%end)
      %q
    })");
  return verdict(text);
}

constexpr const char* kThroughABranch = R"(
      %end = if %c { %a } else { %a })";
constexpr const char* kThroughATuple = R"(
      %t = (%a, %a)
      %end = %t.1)";
constexpr const char* kThroughAView = R"(
      %end = packed "memory.reshape"(%a, shape=[dim(4)]) -> tensor[4; f32])";
constexpr const char* kThroughACall = R"(
      %end = @use(%a))";
constexpr const char* kNotAtAll = R"(
      %end = packed "test.read"(%a, no_retain=true) -> tensor[4; f32])";

TEST(VerifyMemoryPlan, FollowsWhatAValueMayBe) {
  for (const char* middle : {kThroughABranch, kThroughATuple, kThroughAView, kThroughACall}) {
    SCOPED_TRACE(middle);
    EXPECT_THAT(verified(middle, 0), HasSubstr("are alive together in one place"));
    EXPECT_EQ(verified(middle, 64), "");
  }
}

TEST(VerifyMemoryPlan, AllowsAPlaceThatIsDead) {
  EXPECT_EQ(verified(kNotAtAll, 0), "");
}

// Verifies a kernel that overwrites the tensor that it reads; `claim` is its declaration of that.
std::string verified_in_place(const std::string& claim, const std::string& read_last) {
  const std::string text = cat(R"(
    kernel @twice(%x: tensor[4; f32]) -> (%y: tensor[4; f32]) )",
                               claim, R"( {
      for %i from 0 count 4 {
        %y[%i] = %x[%i] + %x[%i]
      }
    }
    fn @main() -> tensor[4; f32] {
      %s = packed "memory.storage"(size=dim(64)) -> opaque["storage"]
      %a = packed "memory.tensor"(%s, offset=dim(0), shape=[dim(4)]) -> tensor[4; f32]
      %view = packed "memory.reshape"(%a, shape=[dim(4)]) -> tensor[4; f32]
      %0 = kernel @twice(%a, %a) -> ()
      %r = packed "test.read"()",
                               read_last, R"(, no_retain=true) -> tensor[4; f32]
      %r
    })");
  return verdict(text);
}

TEST(VerifyMemoryPlan, LetsAKernelOverwriteWhatItSays) {
  EXPECT_EQ(verified_in_place("in_place(0 = 0)", "%a"), "");
  EXPECT_THAT(verified_in_place("", "%a"), HasSubstr("overwrites %a, which it reads"));
  EXPECT_THAT(verified_in_place("in_place(0 = 0)", "%view"),
              HasSubstr("%view is read after %a was overwritten"));
}

TEST(VerifyMemoryPlan, LetsAnArmOverwriteItsResultBeforeItEnds) {
  EXPECT_EQ(verdict(R"(
    kernel @twice(%x: tensor[4; f32]) -> (%y: tensor[4; f32]) in_place(0 = 0) {
      for %i from 0 count 4 {
        %y[%i] = %x[%i] + %x[%i]
      }
    }
    fn @main(%k: bool, %x: tensor[4; f32]) -> tensor[4; f32] {
      %r = if %k {
        %s = packed "memory.storage"(size=dim(64)) -> opaque["storage"]
        %a = packed "memory.tensor"(%s, offset=dim(0), shape=[dim(4)]) -> tensor[4; f32]
        %0 = kernel @twice(%x, %a) -> ()
        %1 = kernel @twice(%a, %a) -> ()
        %a
      } else {
        %x
      }
      %r
    })"),
            "");
}

// Verifies a module whose main runs `body`, in which %s is a storage of 128 bytes.
std::string verified_in_blocks(const std::string& body) {
  return verdict(cat(R"(
    kernel @copy(%x: tensor[4; f32]) -> (%y: tensor[4; f32]) {
      for %i from 0 count 4 {
        %y[%i] = %x[%i]
      }
    }
    fn @main(%k: bool, %x: tensor[4; f32]) -> tensor[4; f32] {
      %s = packed "memory.storage"(size=dim(128)) -> opaque["storage"]
      )",
                     body, R"(
    })"));
}

// A tensor at that offset of the storage, and its first value.
std::string made(const std::string& name, int offset, const std::string& of,
                 const std::string& storage = "%s") {
  return cat(name, R"( = packed "memory.tensor"()", storage, ", offset=dim(", offset,
             "), shape=[dim(4)]) -> tensor[4; f32]\n  %w", name.substr(1), " = kernel @copy(", of,
             ", ", name, ") -> ()\n");
}
std::string read(const std::string& name, const std::string& of) {
  return cat(name, R"( = packed "test.read"()", of, ", no_retain=true) -> tensor[4; f32]\n");
}

TEST(VerifyMemoryPlan, KnowsThatOnlyOneArmOfABranchRuns) {
  const auto verified = [](int then_place, int else_place, int after_place) {
    return verified_in_blocks(cat("%r = if %k {\n", made("%a", then_place, "%x"), "%a } else {\n",
                                  made("%b", else_place, "%x"), "%b }\n",
                                  made("%c", after_place, "%x"), read("%d", "%r"), read("%e", "%c"),
                                  "%d"));
  };
  EXPECT_EQ(verified(0, 0, 64), "");
  EXPECT_EQ(verified(0, 64, 16), "");
  EXPECT_THAT(verified(0, 64, 0), HasSubstr("are alive together in one place"));
  EXPECT_THAT(verified(0, 64, 64), HasSubstr("are alive together in one place"));
}

TEST(VerifyMemoryPlan, KeepsWhatALoopReadsUntilItsEnd) {
  const auto verified = [](int place) {
    return verified_in_blocks(
        cat(made("%a", 0, "%x"), "%r = loop (%i: i64 = 0) while { less(%i, 3) } {\n",
            read("%d", "%a"), made("%b", place, "%x"), read("%e", "%b"), "add(%i, 1) }\n%x"));
  };
  EXPECT_EQ(verified(64), "");
  EXPECT_THAT(verified(0), HasSubstr("%a and %b are alive together in one place"));
}

TEST(VerifyMemoryPlan, LetsALoopHandOnOnlyWhatItDoesNotWriteAgain) {
  const auto verified = [](const std::string& storage) {
    return verified_in_blocks(
        cat("%r = loop (%i: i64 = 0, %y: tensor[4; f32] = %x) while { less(%i, 3) } {\n",
            R"(%own = packed "memory.storage"(size=dim(16)) -> opaque["storage"])", "\n",
            made("%b", 0, "%y", storage), "%j = add(%i, 1)\n(%j, %b) }\n%r.1"));
  };
  EXPECT_EQ(verified("%own"), "");
  EXPECT_THAT(verified("%s"), HasSubstr("%b is handed to the next turn of a loop that writes it"));
}

// A program with `count` tensors in one storage, at places that `offset` gives, all alive at the
// end.
template <class Offset>
std::string many_in_one_storage(int count, const Offset& offset) {
  std::string body, names;
  for (int i = 0; i < count; ++i) {
    body += cat("%t", i, R"( = packed "memory.tensor"(%s, offset=dim()", offset(i),
                "), shape=[dim(4)]) -> tensor[4; f32]\n");
    names += cat(i ? ", %t" : "%t", i);
  }
  return cat(R"(
    fn @main(%n: i64 = [n]) -> i64 {
      %s = packed "memory.storage"(size=dim(64*n)) -> opaque["storage"]
      )",
             body, "%all = (", names, ")\n1 }");
}

TEST(VerifyMemoryPlan, LimitsWhatIsAliveAtSymbolicPlaces) {
  EXPECT_EQ(verdict(many_in_one_storage(64, [](int i) { return cat(i * 16, " + 16*n"); })), "");
  EXPECT_THAT(verdict(many_in_one_storage(65, [](int i) { return cat(i * 16, " + 16*n"); })),
              HasSubstr("more than 64 tensors are alive together in %s"));
  EXPECT_EQ(verdict(many_in_one_storage(200, [](int i) { return cat(i * 16); })), "");
}

TEST(VerifyMemoryPlan, LimitsWhatAValueMayShareMemoryWith) {
  EXPECT_EQ(verdict(many_in_one_storage(256, [](int i) { return cat(i * 16); })), "");
  EXPECT_THAT(verdict(many_in_one_storage(257, [](int i) { return cat(i * 16); })),
              HasSubstr("a value may share memory with more than 256 tensors"));
}

}  // namespace
}  // namespace tenon::graph

#include "object/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object/registry.h"
#include "support/error_testing.h"

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Library, IsAModuleOfWhatItRegisters) {
  int inits = 0;
  auto init = [&] {
    ++inits;
    register_typed("lib.one", [] { return 1; });
    Registration more;
    more.add_typed("lib.begin", [] {}, {.at_program_start = true});
    more.add_typed("lib.end", [] {}, {.at_program_end = true});
    more.commit();
  };
  const Module library = define_library("test_lib", init);
  EXPECT_EQ(library.get()->kind, "library");
  EXPECT_THAT(library.get()->names, ElementsAre("lib.one", "lib.begin", "lib.end"));
  EXPECT_EQ(library.at("lib.one")().as<int>(), 1);
  EXPECT_EQ(library.get()->at_program_start.size(), 1u);
  EXPECT_EQ(library.get()->at_program_end.size(), 1u);
  EXPECT_EQ(define_library("test_lib", init).get(), library.get());
  EXPECT_EQ(load_library("test_lib", {}).get(), library.get());
  EXPECT_EQ(inits, 1);
}

TEST(Library, ThatFailsRegistersNothingAndCanBeDefinedLater) {
  bool fails = true;
  auto init = [&] {
    register_typed("late.one", [] { return 1; });
    if (fails) throw Error(ErrorKind::Runtime, "not yet");
  };
  EXPECT_THAT(failure_of([&] { define_library("test_late", init); }), HasSubstr("not yet"));
  EXPECT_FALSE(find_function("late.one"));
  fails = false;
  EXPECT_EQ(define_library("test_late", init).at("late.one")().as<int>(), 1);
}

TEST(Library, HasANameAndNoPath) {
  for (const char* name : {"", "../x", "a/b", "lib.so"}) {
    EXPECT_THAT(failure_of([&] { load_library(name, {}); }), HasSubstr("not a valid library name"));
  }
  EXPECT_FALSE(load_library("test_nowhere", {}));
}

}  // namespace
}  // namespace tenon

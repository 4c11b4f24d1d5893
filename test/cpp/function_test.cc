// Functions, modules, and exceptions through them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_program.h"

namespace {

using namespace tenon;
using testing::ElementsAre;
using testing::HasSubstr;

int64_t triple(int64_t x) {
  return 3 * x;
}

struct HostError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(CppFunction, CallsALambdaWithTypedArguments) {
  const Function add([](int64_t a, double b) { return static_cast<double>(a) + b; });
  EXPECT_EQ(add(1, 2.5).as<double>(), 3.5);
  EXPECT_EQ(add(1, 2).as<double>(), 3);
}

TEST(CppFunction, CallsAFunctionPointer) {
  EXPECT_EQ(Function(triple)(4).as<int>(), 12);
}

TEST(CppFunction, ReturnsNoneForVoid) {
  int called = 0;
  const Function f([&called] { ++called; });
  EXPECT_TRUE(f().is_none());
  EXPECT_EQ(called, 1);
}

TEST(CppFunction, TakesAllArgumentsAsASpan) {
  const Function count([](std::span<const Value> all) { return all.size(); });
  EXPECT_EQ(count(1, "two", nullptr).as<int>(), 3);
  const std::vector<Value> many(20, Value(1));
  EXPECT_EQ(count.call(many).as<int>(), 20);
}

TEST(CppFunction, IsAValueToPassAndReturn) {
  const Function compose(
      [](Function f, Function g) { return [f, g](int64_t x) { return f(g(x)); }; });
  const auto f = compose([](int64_t x) { return x + 1; }, triple).as<Function>();
  EXPECT_EQ(f(5).as<int>(), 16);
}

// An error whose text is that of an exception which the host dropped is not that exception.
TEST(CppFunction, TellsAnExceptionFromAnErrorWithItsText) {
  const Function fail([] { throw HostError("no luck"); });
  EXPECT_THROW(fail(), HostError);
  tenon_any result = TENON_NONE_VALUE;
  ASSERT_EQ(tenon_function_call(fail.raw(), nullptr, 0, &result), -1);
  tenon_error_take(nullptr);
  tenon_error_set(TENON_ERROR_USAGE, "no luck");
  EXPECT_THROW(detail::check(-1), UsageError);
}

TEST(CppFunction, ReleasesItsContext) {
  const auto context = std::make_shared<int>(1);
  {
    const Function f([context] { return *context; });
    EXPECT_EQ(context.use_count(), 2);
  }
  EXPECT_EQ(context.use_count(), 1);
}

TEST(CppFunction, RefusesAWrongNumberOfArguments) {
  const Function f([](int, int) {});
  const std::string text = caught<UsageError>([&] { f(1); });
  EXPECT_THAT(text, HasSubstr("wrong number of arguments"));
  EXPECT_THAT(text, HasSubstr("found     1"));
  EXPECT_THAT(text, HasSubstr("expected  2"));
}

TEST(CppFunction, RefusesAnArgumentOfAnotherType) {
  const Function f([](int, std::string) {});
  const std::string text = caught<UsageError>([&] { f(1, 2); });
  EXPECT_THAT(text, HasSubstr("argument 2 of 2 has another type"));
  EXPECT_THAT(text, HasSubstr("expected  string"));
}

TEST(CppFunction, ExceptionsComeBackAsThemselves) {
  const Function f([] { throw HostError("no disk"); });
  EXPECT_EQ(caught<HostError>([&] { f(); }), "no disk");
  const Function g([] { throw 42; });
  EXPECT_THROW(g(), int);
  const Function outer([&] { f(); });
  EXPECT_EQ(caught<HostError>([&] { outer(); }), "no disk");
}

TEST(CppFunction, ErrorsKeepTheirParts) {
  const Function f([] { throw UnsupportedError("not on this host", {{"help", "use another"}}); });
  try {
    f();
    FAIL();
  } catch (const UnsupportedError& e) {
    EXPECT_EQ(e.message(), "not on this host");
    EXPECT_EQ(e.help(), "use another");
  }
}

TEST(CppFunction, IsRegisteredAndFoundByName) {
  register_function("test.cpp.triple", triple);
  EXPECT_EQ(find_function("test.cpp.triple")(2).as<int>(), 6);
  EXPECT_THROW(register_function("test.cpp.triple", triple), UsageError);
  register_function("test.cpp.triple", [](int64_t x) { return x; }, {.replace = true});
  EXPECT_EQ(find_function("test.cpp.triple")(2).as<int>(), 2);
  EXPECT_THAT(caught<UsageError>([] { find_function("test.cpp.tripl"); }),
              HasSubstr("test.cpp.triple"));
}

TEST(CppFunction, ALibrarysExceptionWaits) {
  EXPECT_EQ(register_library([] { register_function("test.cpp.of_library", triple); }), 0);
  EXPECT_EQ(register_library([] { register_function("test.cpp.of_library", triple); }), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("test.cpp.of_library"));
}

TEST(CppFunction, OnlyFunctionsOfProgramsCanBeCancelled) {
  EXPECT_THAT(caught<UsageError>([] { Function(triple).cancel(); }),
              HasSubstr("not a function of a program"));
}

TEST(CppFunction, ThreadsArePositive) {
  EXPECT_GT(function_threads(), 0);
}

TEST(CppModule, FindsFunctionsInItselfAndItsImports) {
  Module outer("outer", {});
  const Module inner("inner", {{"triple", triple}});
  EXPECT_THAT(inner.functions(), ElementsAre("triple"));
  EXPECT_THAT(caught<UsageError>([&] { outer["triple"]; }), HasSubstr("no function"));
  outer.import(inner);
  EXPECT_EQ(outer["triple"](1).as<int>(), 3);
  EXPECT_THROW(Module(inner).import(outer), UsageError);
}

}  // namespace

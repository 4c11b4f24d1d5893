#include "object/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <stdexcept>
#include <thread>

#include "object/module.h"
#include "object/registry.h"
#include "object/tensor.h"
#include "support/error_testing.h"

namespace tenon {
namespace {

TEST(Function, CallsATypedLambda) {
  auto f = Function::from_typed([](int64_t a, const String& b) { return cat(a, b.view()); });
  EXPECT_EQ(f(1, "x").as<String>(), "1x");
  EXPECT_EQ(f(1, std::string("longer than seven")).as<String>(), "1longer than seven");
}

TEST(Function, ReturnsNoneFromVoid) {
  int64_t sum = 0;
  auto f = Function::from_typed([&sum](int64_t a) { sum += a; });
  EXPECT_TRUE(f(3).is_none());
  EXPECT_EQ(sum, 3);
}

TEST(Registry, ALibraryIsRegisteredWholeOrNotAtAll) {
  auto body = [] { return 1; };
  register_typed("test.taken", body);
  Registration library;
  library.add_typed("test.first", body);
  library.add_typed("test.taken", body);
  EXPECT_EQ(failure_of([&] { library.commit(); }),
            "error: a function \"test.taken\" is already registered\n"
            "  help: replace it (TENON_REPLACE in C, override=True in Python), or choose "
            "another name");
  EXPECT_FALSE(find_function("test.first"));
  unregister_function("test.taken");
  library.commit();
  EXPECT_TRUE(find_function("test.first") && find_function("test.taken"));
  unregister_function("test.first");
  unregister_function("test.taken");
}

TEST(Function, NamesTheArgumentThatDoesNotFit) {
  auto f = Function::from_typed([](int64_t, const Tensor&) {}, "my.add");
  EXPECT_EQ(failure_of([&] { f(1); }), "error: my.add takes 2 arguments, not 1");
  EXPECT_EQ(failure_of([&] { f(1, 2); }),
            "error: argument 1 of my.add has the wrong type\n"
            "  found     int\n"
            "  expected  tensor");
}

TEST(Function, SeesHandlesWithoutCountingThem) {
  Tensor t = Tensor::empty({1}, f32);
  uint32_t seen = 0;
  auto f = Function::from_typed([&](const Tensor& a) { seen = a->strong_count(); });
  f(t);
  EXPECT_EQ(seen, 1u);
}

TEST(Function, AnErrorKeepsItsKindRowsAndFrames) {
  auto f = Function::from_typed([] {
    throw Error(ErrorKind::Damaged, "broken").found("this").frame("main").help("mend it");
  });
  EXPECT_EQ(failure_of([&] { f(); }),
            "error: broken\n  found     this\n  at main\n  help: mend it");
  EXPECT_FALSE(has_error());
}

TEST(Function, OtherExceptionsBecomeRuntimeErrors) {
  auto f = Function::from_typed([] { throw std::logic_error("oops"); });
  EXPECT_EQ(failure_of([&] { f(); }), "error: oops");
  auto g = Function::from_typed([] { throw 3; });
  EXPECT_EQ(failure_of([&] { g(); }), "error: an exception that is not a std::exception");
  auto h = Function::from_typed([] { throw std::bad_alloc(); });
  EXPECT_EQ(failure_of([&] { h(); }), "error: out of memory");
}

TEST(Function, AFailureThatLeavesNoErrorIsOfItsMaker) {
  auto host =
      Function::from_c([](void*, const AnyView*, int32_t, Any*) { return -1; }, nullptr, nullptr);
  auto made = make<FunctionObj>();
  made->call = [](void*, const AnyView*, int32_t, Any*) { return -1; };
  auto ours = Function::adopt(std::move(made));
  for (auto [f, kind] : {std::pair{host, ErrorKind::Runtime}, {ours, ErrorKind::Internal}}) {
    try {
      f();
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
    }
  }
}

TEST(Function, AForeignErrorKeepsItsKindsName) {
  auto o = make<ErrorObj>();
  o->deleter = [](void* self, int flags) { delete_object<ErrorObj>(self, flags); };  // not ours
  o->kind = {"ValueError", 10};
  o->message = {"bad", 3};
  o->backtrace = {"a\nb\n", 4};
  Error e = error_of(*o);
  EXPECT_EQ(e.kind(), ErrorKind::Runtime);
  EXPECT_EQ(e.render(), "error: ValueError: bad\n  at a\n  at b");
}

TEST(Function, AnErrorObjectsBacktraceCanBeAddedTo) {
  auto o = ErrorObj::of(Error(ErrorKind::Usage, "m").frame("x"));
  StringCell more{"y\n", 2};
  o->update_backtrace(o.get(), &more, 1);
  EXPECT_EQ(std::string(o->backtrace.data, o->backtrace.size), "x\ny\n");
  o->update_backtrace(o.get(), &more, 0);
  EXPECT_EQ(std::string(o->backtrace.data, o->backtrace.size), "y\n");
}

TEST(Function, ErrorsOfThreadsAreApart) {
  set_error(ErrorKind::Usage, "here");
  std::thread([] { EXPECT_FALSE(has_error()); }).join();
  EXPECT_EQ(take_error().message(), "here");
}

TEST(Function, ACFunctionFreesItsContextOnce) {
  static int freed = 0;
  static int context = 5;
  {
    auto f = Function::from_c(
        [](void* c, const AnyView* args, int32_t, Any* result) {
          *result = Any(*static_cast<int*>(c) + args[0].v.i);
          return 0;
        },
        &context, [](void*) { ++freed; });
    EXPECT_EQ(f(2).as<int64_t>(), 7);
  }
  EXPECT_EQ(freed, 1);
}

TEST(Function, IsAValue) {
  auto apply = Function::from_typed([](const Function& f, int64_t x) { return f(x); });
  auto twice = Function::from_typed([](int64_t x) { return 2 * x; });
  EXPECT_EQ(apply(twice, 4).as<int64_t>(), 8);
}

TEST(Registry, FindsByNameAndRefusesATakenOne) {
  register_typed("test.twice", [](int64_t x) { return 2 * x; }, {.for_files = true});
  EXPECT_EQ(function_named("test.twice")(3).as<int64_t>(), 6);
  EXPECT_TRUE(find_registered("test.twice")->flags.for_files);
  EXPECT_EQ(failure_of([] { register_typed("test.twice", [] {}); }),
            "error: a function \"test.twice\" is already registered\n"
            "  help: replace it (TENON_REPLACE in C, override=True in Python), or choose "
            "another name");
  EXPECT_EQ(failure_of([] { function_named("test.twise"); }),
            "error: no function \"test.twise\" is registered\n  help: did you mean test.twice?");
  EXPECT_EQ(failure_of([] { function_named("tenon.compile"); }),
            "error: no function \"tenon.compile\" is registered\n"
            "  help: load the library that registers it first");
  register_function("test.twice", Function::from_typed([](int64_t x) { return 3 * x; }), {}, true);
  EXPECT_EQ(function_named("test.twice")(3).as<int64_t>(), 9);
  EXPECT_FALSE(find_registered("test.twice")->flags.for_files);
  EXPECT_TRUE(unregister_function("test.twice"));
  EXPECT_FALSE(find_function("test.twice"));
  EXPECT_THROW(register_function("", Function::from_typed([] {})), Error);
}

Module module_with(const char* module, const char* function, int* lookups) {
  return Module("test", module,
                [=](std::string_view name) {
                  ++*lookups;
                  return name == function ? Function::from_typed([] { return 1; }) : Function();
                },
                {function});
}

TEST(Module, RemembersWhatItFound) {
  int lookups = 0;
  Module m = module_with("m", "f", &lookups);
  EXPECT_TRUE(m.find("f"));
  EXPECT_TRUE(m.find("f").same_as(m.find("f")));
  EXPECT_EQ(lookups, 1);
}

TEST(Module, LooksIntoItsImportsAndSaysWhatThereIs) {
  int lookups = 0;
  Module a = module_with("a", "alpha", &lookups), b = module_with("b", "beta", &lookups);
  a.import(b);
  EXPECT_TRUE(a.find("beta"));
  EXPECT_FALSE(a.find("beta", false));
  EXPECT_EQ(
      failure_of([&] { a.at("bta"); }),
      "error: a has no function \"bta\"\n  has       alpha, beta\n  help: did you mean beta?");
}

TEST(Module, ImportsMakeNoCycleAndAreVisitedOnce) {
  int lookups = 0;
  Module a = module_with("a", "f", &lookups), b = module_with("b", "f", &lookups);
  a.import(b);
  EXPECT_THROW(b.import(a), Error);
  EXPECT_THROW(a.import(a), Error);
  // A ladder of diamonds has 2^30 paths.
  Module top = module_with("0", "x", &lookups);
  for (int i = 0; i < 30; ++i) {
    Module left = module_with("l", "x", &lookups), right = module_with("r", "x", &lookups),
           next = module_with("n", "x", &lookups);
    left.import(top);
    right.import(top);
    next.import(left);
    next.import(right);
    top = next;
  }
  lookups = 0;
  EXPECT_FALSE(top.find("none"));
  EXPECT_EQ(lookups, 91);
}

TEST(Module, HasTheFunctionsThatItIsMadeOf) {
  const Function f = Function::from_typed([](int64_t i) { return i + 1; });
  const Module module("test", "m", Map<String, Function>{{"b", f}, {"a", f}});
  EXPECT_THAT(module.get()->names, testing::ElementsAre("b", "a"));
  EXPECT_EQ(module.at("a")(4).as<int64_t>(), 5);
  EXPECT_FALSE(module.find("c"));
}

TEST(Module, AChainIsBuiltFromEitherEndInProportionToItsLength) {
  const int length = 20'000;  // walking the chain at each import takes tens of seconds
  const auto make_module = [] { return Module("test", "m", Map<String, Function>()); };
  const std::clock_t begin = std::clock();
  Module first = make_module(), top = first, bottom = first;
  for (int i = 0; i < length; ++i) {
    Module above = make_module(), below = make_module();
    above.import(top);
    bottom.import(below);
    top = above;
    bottom = below;
  }
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 2);
  EXPECT_THROW(bottom.import(top), Error);
  EXPECT_THROW(bottom.import(first), Error);
}

}  // namespace
}  // namespace tenon

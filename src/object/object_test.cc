#include "object/object.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <thread>

#include "object/any.h"
#include "object/array.h"
#include "object/shape.h"
#include "object/string.h"

namespace tenon {
namespace {

constexpr int kDeep = 1'000'000;
int alive = 0;

struct Counted : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::TestBegin + 1;
  Ref<Object> next;
  explicit Counted(Ref<Object> n = {}) : next(std::move(n)) { ++alive; }
  ~Counted() { --alive; }
};
struct Base : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::TestBegin + 2;
  static constexpr int32_t kTypeLast = TypeIndex::TestBegin + 4;
  int64_t a = 1;
};
struct Derived : Base {
  static constexpr int32_t kTypeIndex = TypeIndex::TestBegin + 3;
  static constexpr int32_t kTypeLast = kTypeIndex;
  int64_t b = 2;
  Ref<Base> c;
};

TEST(Object, CountsItsHolders) {
  auto a = make<Counted>();
  EXPECT_EQ(a->strong_count(), 1u);
  EXPECT_TRUE(a->unique());
  {
    auto b = a;
    EXPECT_EQ(a->strong_count(), 2u);
    EXPECT_FALSE(a->unique());
  }
  auto moved = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(moved->strong_count(), 1u);
  EXPECT_EQ(alive, 1);
  moved = {};
  EXPECT_EQ(alive, 0);
}

TEST(Object, SelfAssignmentKeepsIt) {
  auto a = make<Counted>();
  auto& same = a;
  a = same;
  EXPECT_EQ(a->strong_count(), 1u);
}

TEST(Object, AssigningAPartOfItselfIsSafe) {
  Ref<Object> head = make<Counted>(make<Counted>(make<Counted>()));
  head = static_cast<Counted*>(head.get())->next;
  EXPECT_EQ(alive, 2);
  head = {};
  EXPECT_EQ(alive, 0);
}

TEST(Object, AChainOfAMillionIsDestroyedWithoutRecursion) {
  Ref<Object> head;
  for (int i = 0; i < kDeep; ++i) head = make<Counted>(std::move(head));
  EXPECT_EQ(alive, kDeep);
  head = {};
  EXPECT_EQ(alive, 0);
}

TEST(Object, AChainOfArraysIsDestroyedWithoutRecursion) {
  Array<Any> head;
  for (int i = 0; i < kDeep; ++i) head = Array<Any>{Any(std::move(head))};
  head.clear();
}

TEST(Object, ACountThatIsFullStaysAndNeverFreesTheObject) {
  Counted* raw = make<Counted>().leak();
  raw->counts = Object::kOneWeak | (Object::kSaturated - 1);
  for (int i = 0; i < 3; ++i) retain(raw);
  EXPECT_GE(raw->strong_count(), Object::kSaturated);
  for (int i = 0; i < 1000; ++i) release(raw);
  EXPECT_GE(raw->strong_count(), Object::kSaturated);
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(raw->counts >> 32, 1u) << "the weak count is another";
  raw->counts = Object::kCountsOfNew;
  release(raw);
  EXPECT_EQ(alive, 0);
}

TEST(Object, SizesThatWrapAreRefusedAsTooMuchMemory) {
  const std::string_view huge("abcdefgh", SIZE_MAX);
  EXPECT_THROW(String{huge}, std::bad_alloc);
  EXPECT_THROW(Bytes{huge}, std::bad_alloc);
  const int64_t dim = 1;
  EXPECT_THROW(Shape(std::span(&dim, (size_t{1} << 61) + 1)), std::bad_alloc);
  EXPECT_ANY_THROW(ArrayObj::with_capacity(-1));
}

TEST(Object, AWeakCountKeepsTheMemoryAndNotTheValue) {
  Counted* raw = make<Counted>(make<Counted>()).leak();
  __atomic_fetch_add(&raw->counts, Object::kOneWeak, __ATOMIC_RELAXED);
  release(raw);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(raw->counts, Object::kOneWeak);
  raw->counts = 0;
  raw->deleter(raw, Object::kFree);
}

TEST(Object, AChainWithWeakCountsIsDestroyedWithoutRecursion) {
  std::vector<Counted*> all;
  Ref<Object> head;
  for (int i = 0; i < kDeep; ++i) {
    auto c = make<Counted>(std::move(head));
    c->counts += Object::kOneWeak;
    all.push_back(c.get());
    head = c;
  }
  head = {};
  EXPECT_EQ(alive, 0);
  for (Counted* c : all) {
    EXPECT_EQ(c->counts, Object::kOneWeak);
    c->deleter(c, Object::kFree);
  }
}

TEST(Object, MakeFillsAggregatesAndKeepsDefaults) {
  auto d = make<Derived>();
  EXPECT_EQ(d->a, 1);
  EXPECT_EQ(d->b, 2);
  EXPECT_EQ(make<Derived>(int64_t{7})->b, 7);
  EXPECT_EQ(d->type_index, Derived::kTypeIndex);
}

TEST(Object, KnowsItsTypeAndItsBases) {
  Ref<Base> r = make<Derived>();
  EXPECT_TRUE(r.is<Derived>());
  EXPECT_NE(r.as<Derived>(), nullptr);
  Ref<Base> b = make<Base>();
  EXPECT_EQ(b.as<Derived>(), nullptr);
  EXPECT_FALSE(b.cast<Derived>());
  Ref<const Object> c = r;
  EXPECT_EQ(c.as<Base>()->a, 1);
  EXPECT_EQ(c, r);
}

TEST(Object, ACopyIsAnObjectOfItsOwn) {
  auto d = make<Derived>();
  auto e = make<Derived>(*d);
  EXPECT_EQ(e->strong_count(), 1u);
  EXPECT_EQ(d->strong_count(), 1u);
}

TEST(Object, ThreadsShareOneCount) {
  auto o = make<Counted>();
  auto use = [&] {
    for (int i = 0; i < 100000; ++i) Ref<Counted> copy = o;
  };
  std::thread a(use), b(use);
  a.join();
  b.join();
  EXPECT_EQ(o->strong_count(), 1u);
}

// An account with so many bytes.
struct TestAccount : MemoryAccount {
  size_t left;
  explicit TestAccount(size_t bytes) : left(bytes) {}
  bool count_memory(size_t bytes) override {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  }
  void discount_memory(size_t bytes) override { left += bytes; }
  void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "over the limit"); }
};

TEST(ObjectBudget, CountsObjectsUntilTheyDie) {
  TestAccount account(100'000);
  {
    ObjectBudget budget(&account);
    Array<Any> kept;
    EXPECT_THROW(
        {
          for (int i = 0; i < 10'000; ++i) kept.push_back(Any(Array<Any>{Any(1)}));
        },
        Error);
    EXPECT_GT(kept.size(), 500u);
    EXPECT_GT(budget.counted(), 60'000u);
    kept.clear();
    EXPECT_EQ(budget.counted(), 0u);
    for (int i = 0; i < 10'000; ++i) kept = {Any(Array<Any>{Any(i)})};
    EXPECT_LT(budget.counted(), 1000u);
  }
  EXPECT_EQ(account.left, 100'000u);
  for (int i = 0; i < 10'000; ++i) Array<Any>{Any(i)};
}

TEST(ObjectBudget, TakesBackWhatDiesOnAnotherThread) {
  TestAccount account(100'000);
  ObjectBudget budget(&account);
  for (int round = 0; round < 20; ++round) {
    std::vector<Array<Any>> made;
    for (int i = 0; i < 500; ++i) made.push_back(Array<Any>{Any(i)});
    std::thread([&] { made.clear(); }).join();
  }
}

TEST(ObjectBudget, ObjectsThatOutliveItCountForNobody) {
  Array<Any> outlives;
  TestAccount account(100'000);
  {
    ObjectBudget budget(&account);
    outlives = {Any(1), Any(2)};
  }
  EXPECT_EQ(account.left, 100'000u);
  ObjectBudget budget(&account);
  outlives.clear();
  EXPECT_EQ(budget.counted(), 0u);
}

TEST(ObjectBudget, AnInnerOneTakesThePlaceOfTheOuter) {
  TestAccount outer(100'000), inner(100'000);
  ObjectBudget budget(&outer);
  Array<Any> of_outer = {Any(1)}, of_inner, of_nobody;
  size_t counted = budget.counted();
  {
    ObjectBudget within(&inner);
    of_inner = {Any(1)};
    EXPECT_GT(within.counted(), 0u);
    of_outer.clear();
    ObjectBudget none(nullptr);
    of_nobody = {Any(1)};
  }
  EXPECT_EQ(budget.counted(), counted);  // until it looks at what others gave back
  EXPECT_EQ(of_inner.object()->budget != 0, true);
  EXPECT_EQ(of_nobody.object()->budget, 0u);
  EXPECT_EQ(inner.left, 100'000u);
}

}  // namespace
}  // namespace tenon

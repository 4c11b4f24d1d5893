#include "object/object.h"

#include <gtest/gtest.h>

#include <thread>

#include "object/any.h"
#include "object/array.h"

namespace tenon {
namespace {

constexpr int kDeep = 1'000'000;
int alive = 0;

struct Counted : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::TestBegin + 1;
  static constexpr int32_t kTypeLast = kTypeIndex;
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

}  // namespace
}  // namespace tenon

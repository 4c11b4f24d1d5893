#include <gtest/gtest.h>

#include "object/array.h"
#include "object/function.h"
#include "object/map.h"
#include "object/module.h"
#include "object/reflect.h"
#include "object/registry.h"
#include "object/tensor.h"

namespace tenon {
namespace {

struct Link : Object {
  Ref<Link> next;
  Any more;
  TENON_TYPE(TypeIndex::TestBegin + 1);
};

TEST(Object, AChainOfAMillionIsDestroyedWithoutRecursion) {
  Ref<Link> head;
  for (int i = 0; i < 1'000'000; ++i) head = make<Link>(std::move(head));
  EXPECT_EQ(head->strong_count(), 1u);
  head = {};
}

TEST(Function, ChecksItsArguments) {
  auto f = Function::from_typed([](int64_t a, int64_t b) { return a + b; }, "add");
  EXPECT_EQ(f(1, 2).as<int64_t>(), 3);
  EXPECT_THROW(f(1), Error);
  EXPECT_THROW(f(1, "x"), Error);
}

}  // namespace
}  // namespace tenon

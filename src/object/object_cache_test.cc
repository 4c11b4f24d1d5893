#include "object/object_cache.h"

#include <gtest/gtest.h>

#include <set>

#include "object/shape.h"

namespace tenon {
namespace {

const void* memory_of_new_shape(std::initializer_list<int64_t> dims) {
  return Shape(dims).object();
}

#ifndef __SANITIZE_ADDRESS__
TEST(ObjectCache, GivesMemoryToTheNextObjectOfItsSize) {
  ObjectCache cache;
  const ObjectCache::Scope scope(&cache);
  const void* first = memory_of_new_shape({1, 2});
  const Shape other({1, 2, 3, 4, 5, 6});
  EXPECT_NE(other.object(), first);
  EXPECT_EQ(memory_of_new_shape({3, 4}), first);
}

TEST(ObjectCache, KeepsABoundedNumber) {
  ObjectCache cache;
  const ObjectCache::Scope scope(&cache);
  std::vector<Shape> many(200, Shape());
  for (Shape& s : many) s = Shape({7, 8});
  std::set<const void*> first;
  for (const Shape& s : many) first.insert(s.object());
  many.clear();
  // The first ones that come back are those that were kept.
  const void* kept = nullptr;
  std::vector<Shape> again;
  for (int i = 0; i < 64; ++i) {
    again.push_back(Shape({7, 8}));
    kept = again.back().object();
    EXPECT_TRUE(first.contains(kept));
  }
}
#endif

TEST(ObjectCache, ServesOnlyWhileInForceAndOnlyItsThread) {
  ObjectCache outer;
  ObjectCache inner;
  const ObjectCache::Scope scope(&outer);
  Shape survivor;
  {
    const ObjectCache::Scope nested(&inner);
    survivor = Shape({1, 2, 3});
    memory_of_new_shape({1, 2, 3});
  }
  inner.clear();
  EXPECT_EQ(survivor[2], 3);  // what lives isn't kept
  survivor = Shape();         // by the outer cache
  outer.clear();
  const ObjectCache::Scope none(nullptr);
  EXPECT_NE(memory_of_new_shape({1, 2, 3}), nullptr);
}

}  // namespace
}  // namespace tenon

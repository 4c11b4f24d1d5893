#include "object/object_cache.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <set>
#include <thread>
#include <vector>

#include "object/shape.h"

namespace tenon {
namespace {

const void* memory_of_new_shape(std::initializer_list<int64_t> dims) {
  return Shape(dims).object();
}

#ifndef __SANITIZE_ADDRESS__
TEST(ObjectCache, GivesMemoryToTheNextObjectOfItsSize) {
  memory_of_new_shape({1, 2});
  const void* first = memory_of_new_shape({1, 2});
  const Shape other({1, 2, 3, 4, 5, 6});
  EXPECT_NE(other.object(), first);
  EXPECT_EQ(memory_of_new_shape({3, 4}), first);
}

TEST(ObjectCache, KeepsABoundedNumber) {
  memory_of_new_shape({7, 8});
  clear_object_cache();
  std::vector<Shape> many(200, Shape());
  for (Shape& s : many) s = Shape({7, 8});
  std::set<const void*> first;
  for (const Shape& s : many) first.insert(s.object());
  many.clear();
  // The first ones that come back are those that were kept.
  std::vector<Shape> again;
  for (int i = 0; i < 64; ++i) {
    again.push_back(Shape({7, 8}));
    EXPECT_TRUE(first.contains(again.back().object()));
  }
}

TEST(ObjectCache, IsTheThreads) {
  memory_of_new_shape({1, 2});
  const void* mine = memory_of_new_shape({1, 2});
  std::thread([mine] {
    memory_of_new_shape({1, 2});
    EXPECT_NE(memory_of_new_shape({1, 2}), mine);
  }).join();
  EXPECT_EQ(memory_of_new_shape({1, 2}), mine);
}
#endif

TEST(ObjectCache, FreesOnlyWhatDied) {
  const Shape survivor({1, 2, 3});
  memory_of_new_shape({1, 2, 3});
  clear_object_cache();
  EXPECT_EQ(survivor[2], 3);
  EXPECT_NE(memory_of_new_shape({1, 2, 3}), nullptr);
}

// What the thread's other destructors drop may die after its cache.
TEST(ObjectCache, MayEndBeforeAnObject) {
  pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key, [](void* shape) { delete static_cast<Shape*>(shape); }), 0);
  std::thread([key] {
    memory_of_new_shape({5, 6});
    ASSERT_EQ(pthread_setspecific(key, new Shape({1, 2, 3, 4})), 0);
  }).join();
  pthread_key_delete(key);
}

}  // namespace
}  // namespace tenon

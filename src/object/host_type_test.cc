#include "object/host_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object/reflect.h"
#include "support/error_testing.h"

namespace tenon {
namespace {

using testing::HasSubstr;

int32_t registered(std::string_view key, std::vector<std::string_view> fields) {
  return register_host_type(key, fields);
}

Any made(int32_t type, std::vector<Any> fields, int* released = nullptr) {
  const auto release = [](void* count) { ++*static_cast<int*>(count); };
  return Any(make_host_object(type, std::vector<AnyView>(fields.begin(), fields.end()), released,
                              released ? +release : nullptr));
}

TEST(HostType, HasFieldsLikeAnyOther) {
  const int32_t point = registered("test.Point", {"x", "y"});
  const Any a = made(point, {Any(1), Any("two")});
  EXPECT_EQ(type_name(a.type_index), "test.Point");
  EXPECT_EQ(repr(a), "test.Point(x=1, y=\"two\")");
  EXPECT_TRUE(structural_equal(a, made(point, {Any(1), Any("two")})));
  EXPECT_FALSE(structural_equal(a, made(point, {Any(2), Any("two")})));
  EXPECT_EQ(structural_hash(a), structural_hash(made(point, {Any(1), Any("two")})));
  const TypeInfo* type = find_type("test.Point");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(get_field(*a.v.object, type->fields[0]).as<int64_t>(), 1);
}

TEST(HostType, IsRegisteredOnce) {
  const int32_t once = registered("test.Once", {"x"});
  EXPECT_EQ(registered("test.Once", {"x"}), once);
  EXPECT_NE(registered("test.Other", {"x"}), once);
  EXPECT_THAT(failure_of([] { registered("test.Once", {"y"}); }),
              HasSubstr("the type \"test.Once\" is registered with other fields"));
}

TEST(HostType, ReleasesItsDataWithItsLastReference) {
  int released = 0;
  {
    const Any a = made(registered("test.Data", {}), {}, &released);
    Any b;
    b = a;
    EXPECT_EQ(b.as_object<HostObj>()->data, &released);
  }
  EXPECT_EQ(released, 1);
}

TEST(HostType, IsRefusedWithoutNames) {
  for (const char* key :
       {"", "graph.Module", "loop.Kernel", "tenon.Program", "int", "bytes", "cell", "a\nb"}) {
    EXPECT_THAT(failure_of([&] { registered(key, {}); }), HasSubstr("needs a key")) << key;
  }
  EXPECT_THAT(failure_of([] {
                registered("test.Twice", {"x", "x"});
              }),
              HasSubstr("two fields of one name"));
  EXPECT_THAT(failure_of([] { made(0x100f00, {}); }),
              HasSubstr("no type of a host has this number"));
  EXPECT_THAT(failure_of([] { made(registered("test.One", {"x"}), {}); }),
              testing::AllOf(HasSubstr("needs a value for each field"), HasSubstr("0 values")));
}

}  // namespace
}  // namespace tenon

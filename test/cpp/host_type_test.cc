// Types of the host.
#include "test_program.h"

namespace {

using namespace tenon;
using testing::ElementsAre;
using testing::HasSubstr;

struct Connection {
  std::shared_ptr<int> socket;
};

TEST(CppHostType, MakesObjectsWithFieldsAndData) {
  const HostType<Connection> connections("test.cpp.Connection", {"address", "port"});
  const auto socket = std::make_shared<int>(7);
  {
    const Value v = connections.make({"localhost", 80}, {socket});
    EXPECT_EQ(v.type_key(), "test.cpp.Connection");
    EXPECT_THAT(v.fields(), ElementsAre("address", "port"));
    EXPECT_EQ(v.field("port").as<int>(), 80);
    ASSERT_NE(connections.find(v), nullptr);
    EXPECT_EQ(*connections.find(v)->socket, 7);
    EXPECT_EQ(connections.find(Value(1)), nullptr);
    EXPECT_EQ(socket.use_count(), 2);
  }
  EXPECT_EQ(socket.use_count(), 1);
}

TEST(CppHostType, RefusesOtherFields) {
  const HostType<int> numbers("test.cpp.Number", {"value"});
  const HostType<int> again("test.cpp.Number", {"value"});
  EXPECT_NE(again.find(numbers.make({1}, 2)), nullptr);
  EXPECT_THAT(caught<UsageError>([] { HostType<int>("test.cpp.Number", {"other"}); }),
              HasSubstr("test.cpp.Number"));
  EXPECT_THROW(numbers.make({}, 2), UsageError);
}

TEST(CppHostType, PassesThroughAProgram) {
  const HostType<int> numbers("test.cpp.Passed", {});
  const auto same = program()["same"](numbers.make({}, 42));
  ASSERT_NE(numbers.find(same), nullptr);
  EXPECT_EQ(*numbers.find(same), 42);
}

}  // namespace

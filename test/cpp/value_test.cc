// Values and their conversions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

#include "tenon/tenon.h"

struct Point {
  int64_t x, y;
};
template <>
struct tenon::Conversion<Point> {
  static std::string name() { return "point"; }
  static tenon::Value make(const Point& p) { return tenon::Array{p.x, p.y}; }
  static std::optional<Point> read(const tenon::Value& v) {
    const auto pair = v.get_if<std::pair<int64_t, int64_t>>();
    return pair ? std::optional(Point{pair->first, pair->second}) : std::nullopt;
  }
};

namespace {

using namespace tenon;
using testing::ElementsAre;
using testing::HasSubstr;

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return InternalError("nothing was thrown");
}

TEST(CppValue, HoldsNoneByDefaultAndFromNullptr) {
  EXPECT_TRUE(Value().is_none());
  EXPECT_TRUE(Value(nullptr).is_none());
  EXPECT_EQ(Value().type_key(), "None");
}

TEST(CppValue, ANullPointerIsNoText) {
  const char* text = nullptr;
  EXPECT_EQ(error_of([&] { Value{text}; }).message(), "a null pointer is not a string");
}

TEST(CppValue, ConvertsNumbersBothWays) {
  EXPECT_EQ(Value(7).as<int64_t>(), 7);
  EXPECT_EQ(Value(size_t{7}).as<uint8_t>(), 7);
  EXPECT_EQ(Value(true).as<bool>(), true);
  EXPECT_EQ(Value(1.5f).as<double>(), 1.5);
  EXPECT_EQ(Value(3).as<float>(), 3.0f);
  EXPECT_FALSE(Value(1.5).is<int>());
  EXPECT_FALSE(Value(1).is<bool>());
  EXPECT_FALSE(Value(true).is<int>());
}

TEST(CppValue, RefusesIntegersThatDoNotFit) {
  const Error e = error_of([] { Value(300).as<int8_t>(); });
  EXPECT_EQ(e.kind(), ErrorKind::usage);
  EXPECT_EQ(e.found(), "int 300");
  EXPECT_EQ(e.expected(), "int from -128 to 127");
  EXPECT_EQ(error_of([] { Value(-1).as<uint32_t>(); }).expected(), "int from 0 to 4294967295");
}

TEST(CppValue, AnIntegerWithoutSignHasAllItsBits) {
  EXPECT_EQ(Value(ULLONG_MAX).as<unsigned long long>(), ULLONG_MAX);
  EXPECT_EQ(Value(ULLONG_MAX).as<int64_t>(), -1) << "as the machine has a u64";
}

TEST(CppValue, ConvertsTexts) {
  const std::string longer = "a text that is too long for the value itself";
  EXPECT_EQ(Value("short").as<std::string>(), "short");
  EXPECT_EQ(Value(longer).as<std::string>(), longer);
  const Value value(std::string_view("bo\0th", 5));
  EXPECT_EQ(value.as<std::string_view>().size(), 5u);
  EXPECT_EQ(Value(std::string("x")).repr(), "\"x\"");
}

TEST(CppValue, ConvertsContainers) {
  EXPECT_THAT(Value(std::vector<int>{1, 2}).as<std::vector<int64_t>>(), ElementsAre(1, 2));
  EXPECT_EQ(Value(std::vector<bool>{true}).repr(), "[true]");
  const auto [number, text] = Value(std::tuple(1, "one")).as<std::tuple<int, std::string>>();
  EXPECT_EQ(number, 1);
  EXPECT_EQ(text, "one");
  EXPECT_EQ(Value(std::optional<int>()).as<std::optional<int>>(), std::nullopt);
  EXPECT_EQ(Value(4).as<std::optional<int>>(), 4);
  const std::map<std::string, int> map{{"a", 1}};
  EXPECT_EQ((Value(map).as<std::map<std::string, int>>()), map);
  EXPECT_FALSE(Value(std::vector<int>{1, 2}).is<std::vector<std::string>>());
  EXPECT_FALSE((Value(std::tuple(1, 2)).is<std::tuple<int>>()));
}

TEST(CppValue, ConvertsDtypesAndDevices) {
  EXPECT_EQ(Value(dtype_of<float>).as<DLDataType>().bits, 32);
  EXPECT_EQ(Value(cpu).as<DLDevice>().device_type, kDLCPU);
}

TEST(CppValue, ConvertsTypesOfTheHost) {
  EXPECT_EQ(Value(Point{1, 2}).as<Point>().y, 2);
  EXPECT_EQ(error_of([] { Value(1).as<Point>(); }).expected(), "point");
}

TEST(CppValue, NamesBothTypesWhenTheyDiffer) {
  const Error e = error_of([] { Value("x").as<Tensor>(); });
  EXPECT_EQ(e.message(), "a value has another type");
  EXPECT_EQ(e.found(), "string");
  EXPECT_EQ(e.expected(), "tensor");
  EXPECT_EQ(error_of([] { Value(1).as<std::vector<std::optional<bool>>>(); }).expected(),
            "array of bool or None");
}

TEST(CppValue, CopiesShareAndMovesEmpty) {
  Array a{1, 2};
  const auto count = [&] { return a.raw()->v.object->counts & 0xffffffff; };
  EXPECT_EQ(count(), 1u);
  Value copy = a;
  EXPECT_EQ(count(), 2u);
  Value moved = std::move(copy);
  EXPECT_EQ(count(), 2u);
  EXPECT_TRUE(copy.is_none());  // NOLINT: what a move leaves is documented
  moved = 3;
  EXPECT_EQ(count(), 1u);
  Value& self = a;
  a = static_cast<const Array&>(self);
  EXPECT_EQ(count(), 1u);
}

TEST(CppValue, IsEqualByContent) {
  EXPECT_EQ(Value(Array{1, "two"}), Value(Array{1, "two"}));
  EXPECT_NE(Value(1), Value(2));
  EXPECT_EQ(Value(3), 3);
}

TEST(CppValue, RefusesToReadFieldsThatDoNotExist) {
  EXPECT_THAT(Value(1).fields(), ElementsAre());
  EXPECT_THAT(error_of([] { Value(1).field("x"); }).message(), HasSubstr("no field"));
}

TEST(CppArray, IsReadByIndexAndInOrder) {
  const Array array{1, "two", Array{3}};
  EXPECT_EQ(array.size(), 3u);
  EXPECT_EQ(array[1].as<std::string>(), "two");
  std::string all;
  for (const Value& item : array) all += item.repr() + " ";
  EXPECT_EQ(all, "1 \"two\" [3] ");
  EXPECT_THAT(error_of([&] { array[3]; }).message(), HasSubstr("element 3"));
  EXPECT_EQ(Array().repr(), "[]");
  EXPECT_EQ((Array{Array{}, Map{}, Shape{}}).repr(), "[[], {}, shape[]]");
}

TEST(CppMap, IsReadByKeyAndInOrder) {
  const Map map{{"b", 1}, {"a", 2}, {"b", 3}};
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map["b"].as<int>(), 3);
  EXPECT_TRUE(map.contains("a"));
  EXPECT_EQ(map.find("c"), std::nullopt);
  EXPECT_EQ(error_of([&] { map["c"]; }).expected(), "\"c\"");
  std::string keys;
  for (const auto& [key, value] : map) keys += key.as<std::string>();
  EXPECT_EQ(keys, "ba");
  EXPECT_FALSE(Map().contains("a"));
  EXPECT_EQ((Map{{"a", "b"}}["a"].as<std::string>()), "b");
}

TEST(CppShape, HoldsDimensions) {
  const Shape shape({2, 3});
  EXPECT_THAT(shape.dims(), ElementsAre(2, 3));
  EXPECT_EQ(shape.rank(), 2u);
  EXPECT_EQ(shape[1], 3);
  EXPECT_THAT(Shape(shape), ElementsAre(2, 3));
  EXPECT_EQ(Shape({7}).rank(), 1u);
}

TEST(CppBytes, HoldBytes) {
  const Bytes bytes(std::string_view("a\0b", 3));
  EXPECT_EQ(bytes.size(), 3u);
  EXPECT_EQ(bytes.view()[2], std::byte{'b'});
  EXPECT_EQ(Value(bytes).as<Bytes>().size(), 3u);
}

TEST(CppError, HasPartsAndText) {
  const Error e(ErrorKind::runtime, "it broke",
                {{"found", "2", "of x"}, {"at", "main"}, {"help", "mend it"}});
  EXPECT_STREQ(e.what(), "error: it broke\n  found     2   of x\n  at main\n  help: mend it");
  EXPECT_EQ(e.kind(), ErrorKind::runtime);
  EXPECT_EQ(e.found(), "2");
  EXPECT_EQ(e.parts()[0].note, "of x");
  EXPECT_EQ(e.help(), "mend it");
  EXPECT_EQ(e.expected(), "");
  EXPECT_THAT(e.frames(), ElementsAre("main"));
  EXPECT_EQ(e.value().type_key(), "error");
}

TEST(CppError, IsCaughtByItsKind) {
  EXPECT_THROW(find_function("no.such.function"), UsageError);
  EXPECT_THROW(load_library("tenon_nowhere"), UnsupportedError);
  EXPECT_THROW(Program::from_bytes(std::as_bytes(std::span("no program"))), DamagedError);
  EXPECT_THROW(throw InternalError("x"), Error);
  EXPECT_THROW(throw ExecutionError("x"), std::exception);
}

TEST(CppError, CopiesWithoutThrowing) {
  static_assert(std::is_nothrow_copy_constructible_v<Error>);
  static_assert(std::is_nothrow_move_constructible_v<Value>);
  static_assert(std::is_nothrow_copy_constructible_v<Tensor>);
}

}  // namespace

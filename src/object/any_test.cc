#include "object/any.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "object/array.h"
#include "object/function.h"
#include "object/map.h"
#include "object/reflect.h"
#include "object/shape.h"
#include "object/string.h"
#include "object/tensor.h"
#include "support/error_testing.h"

namespace tenon {
namespace {

TEST(Any, HoldsPlainValues) {
  EXPECT_TRUE(Any().is_none());
  EXPECT_EQ(Any(3).as<int64_t>(), 3);
  EXPECT_EQ(Any(-3).as<int32_t>(), -3);
  EXPECT_EQ(Any(true).as<bool>(), true);
  EXPECT_EQ(Any(2.5).as<double>(), 2.5);
  EXPECT_EQ(Any(3).as<double>(), 3.0);
  EXPECT_EQ(Any(f32).as<DataType>(), f32);
  EXPECT_EQ(Any(kCpu).as<DLDevice>().device_type, kDLCPU);
  EXPECT_EQ(Any(ErrorKind::Damaged).as<ErrorKind>(), ErrorKind::Damaged);
}

TEST(Any, ZeroesWhatItDoesNotUse) {  // tvm-ffi compares and hashes the bits
  Any a(f32);
  EXPECT_EQ(a.small_length, 0u);
  EXPECT_EQ(a.v.bits >> 32, 0u);
  EXPECT_EQ(Any(true).v.bits, 1u);
}

TEST(Any, RefusesAnotherTypeByName) {
  EXPECT_EQ(failure_of([] { Any("x").as<int64_t>(); }),
            "error: a value is not of type int64\n  found     string\n  expected  int64");
  EXPECT_FALSE(Any(300).is<uint8_t>());
  EXPECT_FALSE(Any(-1).is<uint32_t>());
  EXPECT_FALSE(Any(1).is<bool>());
  EXPECT_FALSE(Any(1.0).is<int64_t>());
  EXPECT_EQ(Any(1.0).try_as<int64_t>(), std::nullopt);
}

TEST(Any, KeepsUpToSevenBytesInside) {
  Any small("1234567"), large("12345678");
  EXPECT_FALSE(small.is_object());
  EXPECT_EQ(small.small_length, 7u);
  EXPECT_EQ(small.v.bytes[7], 0);
  EXPECT_TRUE(large.is_object());
  EXPECT_EQ(small.as<String>(), "1234567");
  EXPECT_EQ(large.as<String>(), "12345678");
  EXPECT_STREQ(large.as<String>().c_str(), "12345678");
  EXPECT_EQ(Any(std::string("a\0b", 3)).as<std::string>().size(), 3u);
  EXPECT_EQ(Any("").as<String>().size(), 0u);
}

TEST(Any, CountsObjects) {
  auto shape = Shape{1, 2};
  Any a = shape;
  EXPECT_EQ(shape.object()->strong_count(), 2u);
  Any b = a;
  EXPECT_EQ(shape.object()->strong_count(), 3u);
  Any c = std::move(b);
  EXPECT_TRUE(b.is_none());
  EXPECT_EQ(shape.object()->strong_count(), 3u);
  a = Any();
  c = a;
  EXPECT_EQ(shape.object()->strong_count(), 1u);
  AnyView view = shape;
  EXPECT_EQ(shape.object()->strong_count(), 1u);
  EXPECT_EQ(view.as<Shape>().size(), 2u);
}

TEST(Any, TakesHandlesWithoutCounting) {
  Tensor t = Tensor::empty({2}, f32);
  Any a(t);
  EXPECT_EQ(t->strong_count(), 2u);
}

TEST(Any, CopiesRawStringsAndRefusesBareTensors) {
  AnyView raw = "a long enough string";
  EXPECT_EQ(raw.type_index, TypeIndex::RawStr);
  EXPECT_EQ(Any(raw).type_index, TypeIndex::Str);
  StringCell cell{"\x01\x02", 2};
  AnyView bytes;
  bytes.type_index = TypeIndex::ByteArrayPtr;
  bytes.v.p = &cell;
  EXPECT_EQ(Any(bytes).as<Bytes>().size(), 2u);
  DLTensor dl{};
  AnyView bare;
  bare.type_index = TypeIndex::DLTensorPtr;
  bare.v.p = &dl;
  EXPECT_THROW(Any{bare}, Error);
}

TEST(Any, SameComparesStringsByContentAndObjectsByIdentity) {
  EXPECT_TRUE(Any("a longer string").same(Any("a longer string")));
  EXPECT_FALSE(Any("a").same(Any("b")));
  EXPECT_TRUE(Any(3).same(Any(3)));
  EXPECT_FALSE(Any(1).same(Any(true)));
  Shape s{1};
  EXPECT_TRUE(Any(s).same(Any(s)));
  EXPECT_FALSE(Any(s).same(Any(Shape{1})));
}

TEST(String, ComparesAndSorts) {
  EXPECT_EQ(String("abc"), "abc");
  EXPECT_LT(String("abc"), String("abd"));
  EXPECT_NE(String("abc"), String("a longer one"));
  String s = "a longer string", moved = std::move(s);
  EXPECT_EQ(s, "");
  EXPECT_EQ(moved, "a longer string");
}

// However often: a few copies, of which each doubles what there is.
TEST(String, GrowsInPlace) {
  Any text = String("a").value();
  std::string same = "a";
  int moves = 0;
  for (int i = 0; i < 20000; ++i) {
    const char* before = detail::text_of(text).data();
    text = append_text(std::move(text), "xyz");
    same += "xyz";
    moves += same.size() > 64 && detail::text_of(text).data() != before;
    ASSERT_EQ(detail::text_of(text).data()[same.size()], '\0');
  }
  EXPECT_EQ(text.as<String>(), same);
  EXPECT_LT(moves, 60);
  // Not while something else refers to it.
  const Any other = text;
  EXPECT_EQ(append_text(std::move(text), "!").as<String>().size(), same.size() + 1);
  EXPECT_EQ(other.as<String>(), same);
  EXPECT_EQ(append_text(String("short").value(), "").as<String>(), "short");
}

TEST(String, RoomIsAtLeastItsSizeAndTheNul) {
  for (size_t size = 1; size < 5000; ++size) {
    EXPECT_GT(text_room(size), size);
    EXPECT_LE(text_room(size), size + std::max<size_t>(1, size / 4));
    EXPECT_EQ(text_room(text_room(size) - 1), text_room(size));
  }
}

TEST(Array, CopiesOnWrite) {
  Array<int64_t> a{1, 2, 3}, b = a;
  b.push_back(4);
  b.set(0, 9);
  EXPECT_EQ(a.to_vector(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(b.to_vector(), (std::vector<int64_t>{9, 2, 3, 4}));
}

TEST(Array, ChangesInPlaceWhenItIsTheOnlyOwner) {
  Array<int64_t> a;
  a.reserve(100);
  Object* object = a.object();
  for (int64_t i = 0; i < 100; ++i) a.push_back(i);
  EXPECT_EQ(a.object(), object);
}

TEST(Array, InsertsErasesAndShrinks) {
  Array<String> a{"b", "a longer string"};
  a.insert(0, "a");
  a.insert(3, "d");
  EXPECT_EQ(repr(a), R"(["a", "b", "a longer string", "d"])");
  a.erase(1);
  a.pop_back();
  EXPECT_EQ(repr(a), R"(["a", "a longer string"])");
  EXPECT_THROW(a.at(2), Error);
}

TEST(Array, ElementsAreSeenInPlace) {
  Array<Ref<ShapeObj>> refs{ShapeObj::of({})};
  EXPECT_EQ(refs[0]->strong_count(), 1u);
  Array<Tensor> tensors{Tensor::empty({1}, f32)};
  for (const Tensor& t : tensors) EXPECT_EQ(t->strong_count(), 1u);
  Array<bool> bools{true, false};
  EXPECT_TRUE(bools[0]);
  EXPECT_FALSE(bools[1]);
  Array<double> doubles{0.5};
  EXPECT_EQ(doubles[0], 0.5);
}

TEST(Array, FromAnAnyChecksEveryElement) {
  Any good = Array<Any>{Any(1), Any(2)}, bad = Array<Any>{Any(1), Any("x")};
  EXPECT_TRUE(good.is<Array<int64_t>>());
  EXPECT_FALSE(bad.is<Array<int64_t>>());
  EXPECT_FALSE(good.is<Array<double>>());  // an element's payload is read as it is
  EXPECT_TRUE(bad.is<Array<Any>>());
}

TEST(Array, EmptyIsAnArrayInAnAnyToo) {
  Any a = Array<int64_t>();
  EXPECT_EQ(a.type_index, TypeIndex::Array);
  EXPECT_TRUE(a.as<Array<int64_t>>().empty());
  Array<int64_t> b = a.as<Array<int64_t>>();
  b.push_back(1);
  EXPECT_TRUE(a.as<Array<int64_t>>().empty());
}

TEST(Map, KeepsTheOrderOfInsertion) {
  Map<String, int64_t> m;
  for (int64_t i = 0; i < 1000; ++i) m.set(cat("a rather long key ", 999 - i), i);
  int64_t i = 0;
  for (const auto& [key, value] : m) {
    EXPECT_EQ(key, cat("a rather long key ", 999 - i));
    EXPECT_EQ(value, i++);
  }
  EXPECT_EQ(m.at("a rather long key 0"), 999);
  EXPECT_EQ(m.find("none"), nullptr);
}

TEST(Map, ReplacesErasesAndCopiesOnWrite) {
  Map<String, int64_t> m{{"a", 1}, {"b", 2}, {"c", 3}}, copy = m;
  m.set("b", 20);
  EXPECT_TRUE(m.erase("a"));
  EXPECT_FALSE(m.erase("a"));
  EXPECT_EQ(repr(m), R"({"b": 20, "c": 3})");
  EXPECT_EQ(repr(copy), R"({"a": 1, "b": 2, "c": 3})");
  EXPECT_EQ(m.get_or("z", 7), 7);
}

TEST(Map, NamesTheMissingKey) {
  Map<String, int64_t> m;
  EXPECT_EQ(failure_of([&] { m.at("k"); }), "error: no entry for \"k\"");
}

TEST(Map, TellsKeysOfDifferentTypesApart) {
  Map<Any, Any> m;
  m.set(1, "int");
  m.set(true, "bool");
  m.set(1.0, "float");
  EXPECT_EQ(m.size(), 3u);
}

// The longest run of slots that a search must walk along.
size_t longest_search(const MapObj& map) {
  size_t longest = 0, run = 0;
  for (uint32_t slot : map.slots) {
    run = slot == 0 ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return longest;
}

// Keys that all collide under hashes that anybody can compute: the finaliser of splitmix64, and
// FNV-1a of text followed by it.
TEST(Map, SpreadsKeysThatCollideUnderKnownHashes) {
  auto collides = [](uint64_t hash) {
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return ((hash ^ hash >> 31) & 2047) == 0;
  };
  auto fnv = [](std::string_view text) {
    uint64_t h = 0xcbf29ce484222325u;
    for (char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    return h;
  };
  Map<int64_t, bool> integers;
  for (int64_t i = 0; integers.size() < 1000; ++i) {
    const uint64_t tagged = static_cast<uint64_t>(i) ^ uint64_t { TypeIndex::Int } << 56;
    if (collides(tagged)) integers.set(i, true);
  }
  Map<String, bool> texts;
  for (int64_t i = 0; texts.size() < 1000; ++i) {
    const std::string text = cat("key ", i);
    if (collides(fnv(text))) texts.set(text, true);
  }
  for (const Any& map : {Any(integers), Any(texts)}) {
    const MapObj& object = *map.as_object<MapObj>();
    ASSERT_EQ(object.slots.size(), 2048u);
    EXPECT_LT(longest_search(object), 200u);
  }
}

TEST(Shape, CountsElementsWithoutOverflow) {
  EXPECT_EQ(element_count(Shape{2, 3}.dims()), 6);
  EXPECT_EQ(element_count(Shape{}.dims()), 1);
  EXPECT_EQ(element_count(Shape{INT64_MAX, 2, 0}.dims()), 0);
  EXPECT_EQ(element_count(Shape{INT64_MAX, 2}.dims()), std::nullopt);
  EXPECT_EQ(element_count(Shape{-1, 0}.dims()), std::nullopt);
  EXPECT_EQ(byte_count(Shape{INT64_MAX / 4}.dims(), f64), std::nullopt);
  EXPECT_EQ(to_text(Shape{2, 48}), "[2, 48]");
}

TEST(DataType, HasNamesBothWays) {
#define TENON_DTYPE(identifier, name, ...) \
  EXPECT_EQ(to_text(identifier), name);    \
  EXPECT_EQ(parse_dtype(name), identifier);
#include "tenon/dtypes.def"
  EXPECT_EQ(parse_dtype("float32"), f32);
  EXPECT_EQ(parse_dtype("complex128"), c128);
  EXPECT_EQ(parse_dtype("float32x4"), DataType(kDLFloat, 32, 4));
  for (auto bad : {"", "float", "float33", "int8x", "int8x1", "float32 ", "x", "int99999999999",
                   "c32", "c", "complex"}) {
    EXPECT_EQ(parse_dtype(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace tenon

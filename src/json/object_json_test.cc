#include "json/object_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "object/cell.h"
#include "object/function.h"
#include "object/records_testing.h"
#include "object/string_tensor.h"
#include "object/tensor.h"
#include "support/error_testing.h"
#include "support/poll.h"

namespace tenon {
namespace {

using ObjectJson = Reflected;

TEST_F(ObjectJson, DoesNotRecurseOverDepth) {
  Ref<Expr> a = var("x");
  auto leaf = a;
  for (int i = 0; i < kDeep / 5; ++i) a = add(std::move(a), leaf);
  EXPECT_TRUE(structural_equal(a, from_json(to_json(a)), {true}));
}

class PollCount final : public Poller {
 public:
  void poll() override { ++polls; }
  int polls = 0;
};

TEST_F(ObjectJson, IsPolledBothWays) {
  const Any elements = Array<Any>(std::vector<Any>(100000, Any(int64_t{1})));
  const Any tensor = Tensor::empty({1 << 20}, f32), bytes = Bytes(std::string(1 << 20, 'b'));
  const Any text = String(std::string(1 << 20, 't'));
  for (const Any& value : {elements, tensor, bytes, text}) {
    PollCount count;
    Poller::Scope scope(&count);
    const std::string json = to_json(value);
    EXPECT_GE(count.polls, 20);
    count.polls = 0;
    (void)from_json(json);
    EXPECT_GE(count.polls, 20);
  }
}

TEST_F(ObjectJson, KeepsEveryKind) {
  auto k = kinds();
  Any back = from_json(to_json(k));
  EXPECT_TRUE(equal_and_hash(k, back)) << to_json(k, 1);
  EXPECT_EQ(back.as<Ref<Kinds>>()->cache, 0);
  for (const Any& v :
       {Any(), Any(true), Any(-7), Any(1.5), Any(-0.0), Any(1e300), Any(std::nan("")),
        Any(-INFINITY), Any("text"), Any(String(std::string_view("\xff\0x", 3))),
        Any(Bytes("\x01\xfe")), Any(f16), Any(kCpu), Any(Shape{1, -1}), Any(Array<Any>()),
        Any(Map<Any, Any>{{Any(1), Any("x")}})}) {
    EXPECT_TRUE(equal_and_hash(v, from_json(to_json(v)))) << to_json(v);
  }
}

TEST_F(ObjectJson, KeepsSpansAndSharing) {
  auto x = var("x");
  x->span = Span::merge(Span::at("a.tn", 3, 4), Span::node("/conv"));
  auto back = from_json(to_json(add(x, x))).as<Ref<Add>>();
  EXPECT_EQ(back->left, back->right);
  EXPECT_EQ(back->left->span, x->span);
}

TEST_F(ObjectJson, ATensorOfEachLengthComesBack) {
  for (int64_t n = 0; n < 8; ++n) {
    Tensor t = Tensor::empty({n}, u8);
    for (int64_t i = 0; i < n; ++i) t.data_as<uint8_t>()[i] = static_cast<uint8_t>(250 + i);
    EXPECT_TRUE(structural_equal(t, from_json(to_json(t)))) << n;
  }
}

TEST_F(ObjectJson, RefusesWhatItCannotWrite) {
  EXPECT_THAT(failure_of([] { to_json(Function::from_typed([] {})); }),
              testing::HasSubstr("can't be written as JSON"));
  int x;
  EXPECT_THAT(failure_of([&] { to_json(static_cast<void*>(&x)); }),
              testing::HasSubstr("can't be written as JSON"));
}

TEST_F(ObjectJson, SaysWhereItIsWrong) {
  auto message = [](const char* nodes) {
    std::string text = cat("{\"tenon\": 1, \"root\": null, \"nodes\": [", nodes, "]}");
    try {
      from_json(text, ErrorKind::Damaged, "x");
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Damaged);
      EXPECT_EQ(e.rows().at(0).label, "where");
      return e.message();
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(R"({"$type": "test.Var"})"), "no error");
  EXPECT_EQ(message(R"({"$type": "test.Add"})"), "x: test.Add lacks an object in its field left");
  EXPECT_EQ(message(R"({"array": [null]}, {"$type": "test.Var"},
                       {"$type": "test.Lambda", "params": {"node": 0}, "body": {"node": 1}})"),
            "x: field params can't hold this value");
  EXPECT_EQ(message(R"({"map": []}, {"$type": "test.Var", "span": {"node": 0}})"),
            "x: expected a span");
  EXPECT_EQ(message(R"({"$type": "no.Such"})"), "x: no type \"no.Such\"");
  EXPECT_EQ(message(R"({"$type": "test.Add", "up": 1})"), "x: test.Add has no field \"up\"");
  EXPECT_EQ(message(R"({"$type": "test.Add", "left": 1})"), "x: field left can't hold this value");
  EXPECT_EQ(message(R"({"$type": "test.Kinds", "cache": 1})"),
            "x: test.Kinds has no field \"cache\"");
  EXPECT_EQ(message(R"({"array": [{"node": 0}]})"), "x: no node before this one has that number");
  EXPECT_EQ(message(R"({"array": [{"node": -1}]})"), "x: no node before this one has that number");
  EXPECT_EQ(message(R"({"array": [[1]]})"), "x: an array must be a separate node");
  EXPECT_EQ(message(R"({"map": [[1]]})"), "x: expected a key and a value");
  EXPECT_EQ(message(R"({"map": [[1, 2], [1, 3]]})"), "x: a key appears twice");
  EXPECT_EQ(message(R"({"array": [{"shape": [1.5]}]})"), "x: expected an integer");
  EXPECT_EQ(message(R"({"array": [{"dtype": "f33"}]})"), "x: not an element type");
  EXPECT_EQ(message(R"({"array": [{"bytes": "0"}]})"), "x: expected hexadecimal digits");
  EXPECT_EQ(message(R"({"array": [{"float": "0xg"}]})"), "x: expected the bits of a float");
  EXPECT_EQ(message(R"({"tensor": "int8", "shape": [2], "data": "AA=="})"),
            "x: data of 1 bytes for tensor[2; i8]");
  EXPECT_EQ(message(R"({"tensor": "int8", "shape": [1], "data": "A=A="})"), "x: expected base 64");
  EXPECT_EQ(message(R"({"tensor": "int8", "shape": [-1], "data": ""})"),
            "x: data of 0 bytes for tensor[-1; i8]");
  EXPECT_EQ(message(R"({"array": [{"float": "0x"}]})"), "x: expected the bits of a float");
  EXPECT_EQ(message(R"({"array": [{"float": "0x10000000000000000"}]})"),
            "x: expected the bits of a float");
  EXPECT_EQ(message(R"({"array": [{"float": "3ff0"}]})"), "x: expected the bits of a float");
  EXPECT_EQ(message(R"({"array": [{"float": 1}]})"), "x: expected a string");
  EXPECT_EQ(message(R"({"array": [{"device": "moon:0"}]})"), "x: no device");
  EXPECT_EQ(message(R"({"array": [{"a": 1}]})"), "x: an unknown form: \"a\"");
  EXPECT_EQ(message(R"({"array": [{}]})"), "x: expected an object of one member");
  EXPECT_EQ(message(R"({"array": 1})"), "x: expected an array");
  EXPECT_EQ(message(R"({"cell": []})"), "x: expected a cell's tag");
  EXPECT_EQ(message(R"({"cell": [-1]})"), "x: expected a cell's tag");
  EXPECT_EQ(message(R"({"cell": [0, {"node": 0}]})"), "x: no node before this one has that number");
  EXPECT_EQ(message(R"({"tensor": "int8", "shape": [2]})"), "x: a tensor needs its shape and data");
  EXPECT_EQ(message(R"({"tensor": "int8", "shape": [1], "data": "A"})"), "x: expected base 64");
  EXPECT_EQ(message(R"({"tensor": "int8", "shape": [1], "data": "====" })"), "x: expected base 64");
  EXPECT_EQ(message(R"({"tensor": "string", "shape": [2], "data": ["a"]})"),
            "x: expected the strings of tensor[2; string]");
  EXPECT_EQ(message(R"({"tensor": "string", "shape": [1], "data": [1]})"), "x: expected a string");
  EXPECT_EQ(message("1"), "x: expected a node");
  EXPECT_EQ(message(R"({"other": 1})"), "x: a node of an unknown form");
  EXPECT_EQ(message("{}"), "x: a node of an unknown form");
  const std::pair<const char*, const char*> documents[] = {
      {"[]", "not a Tenon value: it needs \"tenon\", \"root\" and \"nodes\""},
      {R"({"tenon": 1, "root": 1, "nodes": 1})",
       "not a Tenon value: it needs \"tenon\", \"root\" and \"nodes\""},
      {R"({"tenon": 2, "root": 1, "nodes": []})", "an unknown version"}};
  for (const auto& [text, expected] : documents) {
    EXPECT_THAT(failure_of([&, text = text] { from_json(text, ErrorKind::Damaged, "x"); }),
                testing::HasSubstr(expected));
  }
}

TEST_F(ObjectJson, ObjectsAreNestedToALimit) {
  const std::string json = to_json(add(var("x"), var("y")));
  EXPECT_NO_THROW(from_json(json, ErrorKind::Damaged, "x", 2));
  EXPECT_THAT(failure_of([&] { from_json(json, ErrorKind::Damaged, "x", 1); }),
              testing::HasSubstr("objects are nested deeper than 1 levels"));
}

TEST_F(ObjectJson, KeepsCellsAndStrings) {
  auto cell = CellObj::of(3, 2);
  cell->begin()[0] = Any(int64_t{7});
  cell->begin()[1] =
      Any(string_tensor(std::vector<int64_t>{2}, std::vector<std::string_view>{"a", ""}));
  const Any value(std::move(cell));
  const std::string json = to_json(value);
  EXPECT_EQ(to_json(from_json(json)), json);
  EXPECT_NE(json.find(R"("data":["a",""])"), std::string::npos) << json;
}

TEST_F(ObjectJson, DamageIsAnErrorAndNoCrash) {
  std::string text = to_json(kinds());
  for (size_t i = 0; i < text.size(); ++i) {
    for (char c : {'0', '"', '{', '}', 'x'}) {
      std::string mutant = text;
      mutant[i] = c;
      try {
        from_json(mutant);
      } catch (const Error&) {
      }
    }
    EXPECT_THROW(from_json(text.substr(0, i)), Error);
  }
}

}  // namespace
}  // namespace tenon

#include "object/reflect.h"

#include <gtest/gtest.h>

#include <cmath>

#include "object/function.h"
#include "object/object_json.h"
#include "object/tensor.h"

namespace tenon {
namespace {

constexpr int kDeep = 1'000'000;
constexpr int32_t kFirst = TypeIndex::TestBegin + 0x10;

enum class Color : uint8_t { Red, Green };
constexpr const char* kColors[] = {"red", "green"};

struct Expr : Object {
  Span span;
  TENON_BASE_TYPE(kFirst, kFirst + 10);
};
struct Var : Expr {
  String name;
  Any annotation;
  TENON_TYPE(kFirst + 1);
};
struct Add : Expr {
  Ref<Expr> left, right;
  TENON_TYPE(kFirst + 2);
};
struct Lambda : Expr {
  Array<Ref<Var>> params;
  Ref<Expr> body;
  TENON_TYPE(kFirst + 3);
};
struct Kinds : Object {
  bool b = false;
  Color color = Color::Red;
  int32_t i = 0;
  int64_t j = 0;
  double d = 0;
  DataType dtype;
  DLDevice device = kCpu;
  String text;
  Any any;
  Shape shape;
  Map<String, Any> map;
  std::string std_text;
  Array<int64_t> numbers;
  Tensor tensor;
  int64_t cache = 0;
  TENON_TYPE(kFirst + 20);
};

const TypeInfo& Expr::type_info() {
  static const Field fields[] = {field("span", &Expr::span, kIgnored)};
  static const TypeInfo info = type_of<Expr>("test.Expr", fields);
  return info;
}
const TypeInfo& Var::type_info() {
  static const Field fields[] = {field("name", &Var::name, kIgnored),
                                 field("annotation", &Var::annotation)};
  static const TypeInfo info = type_of<Var>("test.Var", fields, &Expr::type_info(), kVariable);
  return info;
}
const TypeInfo& Add::type_info() {
  static const Field fields[] = {field("left", &Add::left), field("right", &Add::right)};
  static const TypeInfo info = type_of<Add>("test.Add", fields, &Expr::type_info());
  return info;
}
const TypeInfo& Lambda::type_info() {
  static const Field fields[] = {field("params", &Lambda::params, kBinds),
                                 field("body", &Lambda::body)};
  static const TypeInfo info = type_of<Lambda>("test.Lambda", fields, &Expr::type_info());
  return info;
}
const TypeInfo& Kinds::type_info() {
  static const Field fields[] = {field("b", &Kinds::b),
                                 field("color", &Kinds::color, kColors),
                                 field("i", &Kinds::i),
                                 field("j", &Kinds::j),
                                 field("d", &Kinds::d),
                                 field("dtype", &Kinds::dtype),
                                 field("device", &Kinds::device),
                                 field("text", &Kinds::text),
                                 field("any", &Kinds::any),
                                 field("shape", &Kinds::shape),
                                 field("map", &Kinds::map),
                                 field("std_text", &Kinds::std_text),
                                 field("numbers", &Kinds::numbers),
                                 field("tensor", &Kinds::tensor),
                                 field("cache", &Kinds::cache, kIgnored | kHidden)};
  static const TypeInfo info = type_of<Kinds>("test.Kinds", fields);
  return info;
}

class Reflect : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_types({&Expr::type_info(), &Var::type_info(), &Add::type_info(), &Lambda::type_info(),
                    &Kinds::type_info()});
  }
  static Ref<Var> var(const char* name, Any annotation = Any()) {
    auto v = make<Var>();
    v->name = name;
    v->annotation = std::move(annotation);
    return v;
  }
  static Ref<Expr> add(Ref<Expr> l, Ref<Expr> r) {
    auto a = make<Add>();
    a->left = std::move(l);
    a->right = std::move(r);
    return a;
  }
  static Ref<Expr> lambda(Array<Ref<Var>> params, Ref<Expr> body) {
    auto l = make<Lambda>();
    l->params = std::move(params);
    l->body = std::move(body);
    return l;
  }
  static Ref<Kinds> kinds() {
    auto k = make<Kinds>();
    k->b = true;
    k->color = Color::Green;
    k->i = -5;
    k->j = INT64_MIN;
    k->d = 0.1;
    k->dtype = f32;
    k->text = "a text longer than seven";
    k->any = Array<Any>{Any(1), Any(2.0), Any(), Any("s")};
    k->shape = Shape{2, 3};
    k->map = {{"k", Any(1)}, {"l", Any(Shape{})}};
    k->std_text = "std";
    k->numbers = {1, 2};
    const float data[2] = {1, 2};
    k->tensor = Tensor::copy_of<float>(Shape{2}.dims(), f32, data);
    k->cache = 77;
    return k;
  }
  static bool equal_and_hash(const AnyView& a, const AnyView& b, EqualOptions o = {}) {
    bool equal = structural_equal(a, b, o);
    EXPECT_EQ(equal, structural_equal(b, a, o));
    if (equal) {
      EXPECT_EQ(structural_hash(a, o), structural_hash(b, o));
    }
    return equal;
  }
};

TEST_F(Reflect, FieldsListBasesFirst) {
  std::string names;
  for (const Field* f : all_fields(Add::type_info())) names += cat(f->name, " ");
  EXPECT_EQ(names, "span left right ");
  EXPECT_EQ(find_type("test.Add"), &Add::type_info());
  EXPECT_EQ(find_type(Add::kTypeIndex), &Add::type_info());
  EXPECT_EQ(find_type("test.None"), nullptr);
}

TEST_F(Reflect, EveryKindOfFieldIsReadAndWritten) {
  auto from = kinds();
  auto to = make<Kinds>();
  for (const Field* f : all_fields(Kinds::type_info())) set_field(*to, *f, get_field(*from, *f));
  EXPECT_TRUE(equal_and_hash(from, to));
  EXPECT_EQ(to->cache, 77);
}

TEST_F(Reflect, AFieldRefusesAnotherType) {
  auto k = make<Kinds>();
  auto message = [&](const char* name, const AnyView& value) -> std::string {
    for (const Field* f : all_fields(Kinds::type_info())) {
      if (std::string_view(f->name) != name) continue;
      try {
        set_field(*k, *f, value);
      } catch (const Error& e) {
        return e.render();
      }
    }
    return "no error";
  };
  EXPECT_EQ(message("numbers", Array<String>{"x"}),
            "error: field numbers can't hold this value\n"
            "  expected  array of int64\n  found     [\"x\"]");
  EXPECT_EQ(message("i", int64_t{1} << 40),
            "error: field i can't hold this value\n  expected  int32\n  found     1099511627776");
  EXPECT_EQ(message("color", 2),
            "error: field color can't hold this value\n  expected  red, green\n  found     2");
  EXPECT_EQ(message("color", "green"), "no error");
  EXPECT_EQ(k->color, Color::Green);
  auto a = make<Add>();
  EXPECT_THROW(set_field(*a, Add::type_info().fields[0], Shape{1}), Error);
}

TEST_F(Reflect, EqualityIgnoresSpansAndHiddenFields) {
  auto a = kinds(), b = kinds();
  b->cache = 1;
  EXPECT_TRUE(equal_and_hash(a, b));
  auto x = var("x");
  auto p = add(x, x), q = add(x, x);
  q->span = Span::at("f", 1);
  EXPECT_TRUE(equal_and_hash(p, q));
}

TEST_F(Reflect, EveryFieldMakesADifference) {
  auto a = kinds();
  std::vector<std::pair<const char*, Any>> changes = {
      {"b", false},
      {"color", "red"},
      {"i", 1},
      {"j", 1},
      {"d", 0.2},
      {"dtype", f64},
      {"text", "other"},
      {"any", Any(1)},
      {"shape", Shape{2}},
      {"map", Map<String, Any>{{"k", Any(2)}, {"l", Any(Shape{})}}},
      {"std_text", "x"},
      {"numbers", Array<int64_t>{2, 1}},
      {"device", DLDevice{kDLCUDA, 0}},
      {"tensor", Tensor()}};
  for (const auto& [name, value] : changes) {
    auto b = kinds();
    for (const Field* f : all_fields(Kinds::type_info())) {
      if (std::string_view(f->name) == name) set_field(*b, *f, value);
    }
    EXPECT_FALSE(equal_and_hash(a, b)) << name;
    EXPECT_NE(structural_hash(a), structural_hash(b)) << name;
  }
}

TEST_F(Reflect, FloatsAreEqualByBits) {
  EXPECT_TRUE(equal_and_hash(std::nan(""), std::nan("")));
  EXPECT_FALSE(equal_and_hash(0.0, -0.0));
  EXPECT_FALSE(equal_and_hash(1, 1.0));
}

TEST_F(Reflect, VariablesMatchWhereTheyAreDefined) {
  auto x = var("x"), y = var("y"), a = var("a"), b = var("b");
  EXPECT_TRUE(equal_and_hash(lambda({x, y}, add(x, y)), lambda({a, b}, add(a, b))));
  EXPECT_FALSE(equal_and_hash(lambda({x, y}, add(x, y)), lambda({a, b}, add(b, a))));
  EXPECT_FALSE(equal_and_hash(lambda({x, y}, add(x, x)), lambda({a, b}, add(a, b))));
  EXPECT_NE(structural_hash(lambda({x, y}, add(x, y))), structural_hash(lambda({a, b}, add(b, a))));
}

TEST_F(Reflect, ASharedBodyIsNoShortcutPastTheMatching) {
  auto x = var("x"), y = var("y");
  auto body = add(x, x);
  EXPECT_FALSE(equal_and_hash(lambda({x}, body), lambda({y}, body)));
}

TEST_F(Reflect, AVariablesAnnotationCounts) {
  auto x = var("x", f32), y = var("y", f32), z = var("z", f64);
  EXPECT_TRUE(equal_and_hash(lambda({x}, x), lambda({y}, y)));
  EXPECT_FALSE(equal_and_hash(lambda({x}, x), lambda({z}, z)));
  EXPECT_NE(structural_hash(lambda({x}, x)), structural_hash(lambda({z}, z)));
}

TEST_F(Reflect, FreeVariablesEqualThemselvesUnlessMapped) {
  auto x = var("x"), y = var("y");
  EXPECT_TRUE(equal_and_hash(add(x, x), add(x, x)));
  EXPECT_FALSE(equal_and_hash(add(x, x), add(y, y)));
  EXPECT_TRUE(equal_and_hash(add(x, x), add(y, y), {true}));
  EXPECT_FALSE(equal_and_hash(add(x, y), add(y, y), {true}));
  EXPECT_TRUE(equal_and_hash(add(x, y), add(y, x), {true}));
}

TEST_F(Reflect, SharingMakesNoDifferenceAndCostsNothing) {
  auto x = var("x");
  EXPECT_TRUE(equal_and_hash(add(add(x, x), add(x, x)), [&] {
    auto shared = add(x, x);
    return add(shared, shared);
  }()));
  EXPECT_TRUE(equal_and_hash(add(add(x, x), add(x, x)),
                             [&] {
                               auto shared = add(x, x);
                               return add(shared, shared);
                             }(),
                             {true}));
  Ref<Expr> a = x, b = x;
  for (int i = 0; i < 200; ++i) a = add(a, a), b = add(b, b);  // 2^200 paths
  EXPECT_TRUE(equal_and_hash(a, b));
  EXPECT_EQ(repr(a, 100).size(), 103u);
}

TEST_F(Reflect, MapsAreEqualInAnyOrderOfPlainKeys) {
  Map<String, int64_t> a{{"x", 1}, {"yyyyyyyyyy", 2}}, b{{"yyyyyyyyyy", 2}, {"x", 1}},
      c{{"x", 1}, {"yyyyyyyyyy", 3}};
  EXPECT_TRUE(equal_and_hash(a, b));
  EXPECT_FALSE(equal_and_hash(a, c));
}

TEST_F(Reflect, TensorsAreEqualByTheirBytes) {
  const float data[2] = {1, 2}, other[2] = {1, 3};
  auto make_tensor = [](const float* d) {
    return Tensor::copy_of_bytes(Shape{2}.dims(), f32, d, 8);
  };
  EXPECT_TRUE(equal_and_hash(make_tensor(data), make_tensor(data)));
  EXPECT_FALSE(equal_and_hash(make_tensor(data), make_tensor(other)));
  EXPECT_FALSE(equal_and_hash(make_tensor(data), make_tensor(data).reshaped(Shape{1, 2}.dims())));
}

TEST_F(Reflect, FunctionsAreEqualWhenIdentical) {
  auto f = Function::from_typed([] {}), g = Function::from_typed([] {});
  EXPECT_TRUE(equal_and_hash(f, f));
  EXPECT_FALSE(equal_and_hash(f, g));
}

TEST_F(Reflect, EqualityHashAndPrintDoNotRecurseOverDepth) {
  Ref<Expr> a = var("x"), b = a;
  auto leaf = a;
  for (int i = 0; i < kDeep; ++i) {
    a = add(std::move(a), leaf);
    b = add(std::move(b), leaf);
  }
  EXPECT_TRUE(equal_and_hash(a, b));
  EXPECT_EQ(repr(a).size(), (1u << 16) + 3);
}

TEST_F(Reflect, JsonDoesNotRecurseOverDepth) {
  Ref<Expr> a = var("x");
  auto leaf = a;
  for (int i = 0; i < kDeep / 5; ++i) a = add(std::move(a), leaf);
  EXPECT_TRUE(structural_equal(a, from_json(to_json(a)), {true}));
}

TEST_F(Reflect, PrintsForAPerson) {
  EXPECT_EQ(repr(kinds()),
            "test.Kinds(b=true, color=green, i=-5, j=-9223372036854775808, d=0.1, dtype=float32, "
            "device=cpu:0, text=\"a text longer than seven\", any=[1, 2.0, None, \"s\"], "
            "shape=shape[2, 3], map={\"k\": 1, \"l\": shape[]}, std_text=\"std\", numbers=[1, 2], "
            "tensor=float32[2])");
  auto v = var("x");
  v->span = Span::at("a.tn", 3);
  EXPECT_EQ(repr(v), "test.Var(span=\"a.tn:3\", name=\"x\", annotation=None)");
  EXPECT_EQ(repr(Function::from_typed([] {})), "<function>");
  EXPECT_EQ(repr("ééé", 4), "\"é...");
}

TEST_F(Reflect, JsonKeepsEveryKind) {
  auto k = kinds();
  Any back = from_json(to_json(k));
  EXPECT_TRUE(equal_and_hash(k, back)) << to_json(k, 1);
  EXPECT_EQ(back.as<Ref<Kinds>>()->cache, 0);
  for (Any v : {Any(), Any(true), Any(-7), Any(1.5), Any(-0.0), Any(1e300), Any(std::nan("")),
                Any(-INFINITY), Any("text"), Any(String(std::string_view("\xff\0x", 3))),
                Any(Bytes("\x01\xfe")), Any(f16), Any(kCpu), Any(Shape{1, -1}), Any(Array<Any>()),
                Any(Map<Any, Any>{{Any(1), Any("x")}})}) {
    EXPECT_TRUE(equal_and_hash(v, from_json(to_json(v)))) << to_json(v);
  }
}

TEST_F(Reflect, JsonKeepsSpansAndSharing) {
  auto x = var("x");
  x->span = Span::merge(Span::at("a.tn", 3, 4), Span::node("/conv"));
  auto back = from_json(to_json(add(x, x))).as<Ref<Add>>();
  EXPECT_EQ(back->left, back->right);
  EXPECT_EQ(back->left->span, x->span);
}

TEST_F(Reflect, JsonOfATensorOfEachLengthComesBack) {
  for (int64_t n = 0; n < 8; ++n) {
    Tensor t = Tensor::empty({n}, u8);
    for (int64_t i = 0; i < n; ++i) t.data_as<uint8_t>()[i] = static_cast<uint8_t>(250 + i);
    EXPECT_TRUE(structural_equal(t, from_json(to_json(t)))) << n;
  }
}

TEST_F(Reflect, JsonRefusesWhatItCannotWrite) {
  EXPECT_THROW(to_json(Function::from_typed([] {})), Error);
  int x;
  EXPECT_THROW(to_json(static_cast<void*>(&x)), Error);
}

TEST_F(Reflect, JsonSaysWhereItIsWrong) {
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
  EXPECT_EQ(message(R"({"$type": "test.Add"})"), "no error");
  EXPECT_EQ(message(R"({"$type": "no.Such"})"), "x: no type \"no.Such\"");
  EXPECT_EQ(message(R"({"$type": "test.Add", "up": 1})"), "x: test.Add has no field \"up\"");
  EXPECT_EQ(message(R"({"$type": "test.Add", "left": 1})"), "x: field left can't hold this value");
  EXPECT_EQ(message(R"({"$type": "test.Kinds", "cache": 1})"),
            "x: test.Kinds has no field \"cache\"");
  EXPECT_EQ(message(R"({"array": [{"node": 0}]})"), "x: no node before this one has that number");
  EXPECT_EQ(message(R"({"array": [{"node": -1}]})"), "x: no node before this one has that number");
  EXPECT_EQ(message(R"({"array": [[1]]})"), "x: an array must be a node of its own");
  EXPECT_EQ(message(R"({"map": [[1]]})"), "x: expected a key and a value");
  EXPECT_EQ(message(R"({"map": [[1, 2], [1, 3]]})"), "x: a key stands twice");
  EXPECT_EQ(message(R"({"array": [{"shape": [1.5]}]})"), "x: expected an integer");
  EXPECT_EQ(message(R"({"array": [{"dtype": "f33"}]})"), "x: no element type");
  EXPECT_EQ(message(R"({"array": [{"bytes": "0"}]})"), "x: expected hexadecimal digits");
  EXPECT_EQ(message(R"({"array": [{"float": "0xg"}]})"), "x: expected the bits of a float");
  EXPECT_EQ(message(R"({"tensor": "int8", "shape": [2], "data": "AA=="})"),
            "x: data of 1 bytes for int8[2]");
  EXPECT_EQ(message(R"({"tensor": "int8", "shape": [1], "data": "A=A="})"), "x: expected base 64");
  EXPECT_EQ(message(R"({"tensor": "int8", "shape": [-1], "data": ""})"),
            "x: data of 0 bytes for int8[-1]");
  EXPECT_EQ(message("{}"), "x: a node of no known form");
  EXPECT_THROW(from_json("[]"), Error);
  EXPECT_THROW(from_json(R"({"tenon": 2, "root": 1, "nodes": []})"), Error);
}

TEST_F(Reflect, DamagedJsonIsAnErrorAndNoCrash) {
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

struct Twin : Object {
  TENON_TYPE(kFirst + 2);
};
const TypeInfo& Twin::type_info() {
  static const TypeInfo info = type_of<Twin>("test.Twin", {});
  return info;
}

TEST_F(Reflect, ANumberBelongsToOneType) {
  EXPECT_THROW(register_types({&Twin::type_info()}), Error);
  register_types({&Add::type_info()});  // again is fine
}

}  // namespace
}  // namespace tenon

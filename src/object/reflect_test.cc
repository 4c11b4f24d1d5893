#include "object/reflect.h"

#include <gtest/gtest.h>

#include <cmath>

#include "object/function.h"
#include "object/records_testing.h"
#include "object/tensor.h"

namespace tenon {
namespace {

using Reflect = Reflected;

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
            "  found     [\"x\"]\n  expected  array of int64");
  EXPECT_EQ(message("i", int64_t{1} << 40),
            "error: field i can't hold this value\n  found     1099511627776\n  expected  int32");
  EXPECT_EQ(message("color", 2),
            "error: field color can't hold this value\n  found     2\n  expected  red, green");
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

TEST_F(Reflect, PrintsForAPerson) {
  EXPECT_EQ(repr(kinds()),
            "test.Kinds(b=true, color=green, i=-5, j=-9223372036854775808, d=0.1, dtype=f32, "
            "device=cpu:0, text=\"a text longer than seven\", any=[1, 2.0, None, \"s\"], "
            "shape=shape[2, 3], map={\"k\": 1, \"l\": shape[]}, std_text=\"std\", numbers=[1, 2], "
            "tensor=tensor[2; f32])");
  auto v = var("x");
  v->span = Span::at("a.tn", 3);
  EXPECT_EQ(repr(v), "test.Var(span=\"a.tn:3\", name=\"x\", annotation=None)");
  EXPECT_EQ(repr(Function::from_typed([] {})), "<function>");
  EXPECT_EQ(repr("ééé", 4), "\"é...");
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

// For tests: a few types with fields of every kind, and values of them.
#pragma once

#include <gtest/gtest.h>

#include "object/reflect.h"
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

class Reflected : public testing::Test {
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

}  // namespace
}  // namespace tenon

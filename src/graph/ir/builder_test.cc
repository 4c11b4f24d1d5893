#include "graph/ir/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/operators_testing.h"

namespace tenon::graph {
namespace {

using ::testing::HasSubstr;

class BuilderTest : public ::testing::Test {
 protected:
  BuilderTest() {
    register_test_operators();
    b.at(Span::node("/test"));
  }
  std::string type(const Operand& o) { return to_text(type_of(o)); }
  std::string error(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.render();
    }
    return "no error";
  }
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  Builder b;
};

TEST_F(BuilderTest, InfersAsItBinds) {
  Operand x = b.param("x", tensor_type(f32, {n, 4}));
  Operand w = b.param("w", tensor_type(f32, {4, 8}));
  EXPECT_EQ(type(b.op("relu", {b.op("matmul", {x, w})})), "tensor[n, 8; f32]");
}

// Not even if it has the address that one of a discarded block had.
TEST_F(BuilderTest, ANewVariableHasNoDefinition) {
  for (int i = 0; i < 64; ++i) {
    b.begin_block();
    b.tuple({constant_int(i)});
    b.finish_block(nullptr);
    b.begin_block();
    EXPECT_EQ(b.definition_of(b.block_var("x", scalar_type(i64))), nullptr);
    b.finish_block(nullptr);
  }
}

TEST_F(BuilderTest, AConditionThatIsNotProvedBecomesACheckOnce) {
  Operand x = b.param("x", tensor_type(f32, {n, 4}));
  Operand w = b.param("w", tensor_type(f32, {m, 8}));
  b.op("matmul", {x, w});
  Operand y = b.op("matmul", {x, w});
  FunctionRef f = b.finish("main", y);
  ASSERT_EQ(f->body->bindings.size(), 3u);
  const auto* c = f->body->bindings[0]->value.as<Check>();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->message, "matmul: inner sizes");
}

TEST_F(BuilderTest, ARefutedConditionIsAnErrorWithTheSpan) {
  Operand x = b.param("x", tensor_type(f32, {n, 4}));
  Operand w = b.param("w", tensor_type(f32, {5, 8}));
  std::string text = error([&] { b.op("matmul", {x, w}); });
  EXPECT_THAT(text, HasSubstr("operator 'matmul': inner sizes: 4 and 5 differ"));
  EXPECT_THAT(text, HasSubstr("/test"));
}

TEST_F(BuilderTest, ASizeThatOnlyRunningTellsIsMatched) {
  Operand x = b.param("x", tensor_type(f32, {n}));
  Operand y = b.op("nonzero", {x});
  EXPECT_EQ(type(y), "tensor[1, nonzero; i64]");
  EXPECT_EQ(type(b.op("nonzero", {x})), "tensor[1, nonzero_0; i64]");
  FunctionRef f = b.finish("main", y);
  EXPECT_EQ(to_text(f->body->bindings[0]->var->type), "tensor[rank=2; i64]");
  EXPECT_EQ(to_text(f->result_type), "tensor[rank=2; i64]");
}

TEST_F(BuilderTest, FreshSizesOfATupleAreMatchedFieldByField) {
  Operand x = b.param("x", tensor_type(f32, {n}));
  auto parts = b.ops("unique", {x});
  EXPECT_EQ(type(parts[0]), "tensor[unique; f32]");
  EXPECT_EQ(type(parts[1]), "tensor[unique; i64]");
}

TEST_F(BuilderTest, ASizeThatGrowsTooLargeIsLeftToRunTime) {
  std::vector<Operand> params;
  for (int i = 0; i < 150; ++i) {
    params.push_back(b.param("x", tensor_type(f32, {Dim::symbol(cat("s", i))})));
  }
  Operand sum = params[0];
  for (const Operand& p : params) sum = b.op("add", {sum, p});
  EXPECT_LT(type(sum).size(), 1500u);
  EXPECT_NE(type(sum).find("size"), std::string::npos) << type(sum);
}

TEST_F(BuilderTest, ElementsTravelThroughTypes) {
  Operand x = b.param("x", tensor_type(f32, {n, 4}));
  Operand s = b.op("shape_of", {x});
  EXPECT_EQ(type(s), "tensor[2; i64] = [n, 4]");
  EXPECT_EQ(b.elements_of(s)[0], n);
  EXPECT_EQ(type(b.op("add", {s, s})), "tensor[2; i64] = [2*n, 8]");
}

TEST_F(BuilderTest, UnknownElementsAreBoundOnce) {
  Operand s = b.param("s", tensor_type(i64, {2}));
  auto e = b.elements_of(s);
  EXPECT_EQ(to_text(e[0]), "s_0");
  EXPECT_EQ(b.elements_of(s)[1], e[1]);
  EXPECT_EQ(b.finish("main", s)->body->bindings.size(), 1u);
}

TEST_F(BuilderTest, ScalarsGiveScalars) {
  Operand x = b.param("x", scalar_type(i64));
  EXPECT_EQ(type(b.op("less", {x, constant_int(2)})), "bool");
  EXPECT_EQ(type(b.op("add", {constant_int(3), constant_int(2)})), "i64 = [5]");
  // Where an operator isn't elementwise, a scalar is a tensor of rank 0.
  EXPECT_EQ(type(b.op("nonzero", {x})), "tensor[0, nonzero; i64]");
}

TEST_F(BuilderTest, ArmsJoin) {
  Operand c = b.param("c", scalar_type(boolean));
  Operand x = b.param("x", tensor_type(f32, {n, 4}));
  Operand y = b.param("y", tensor_type(f32, {m, 4}));
  Operand r = b.if_(
      c, [&] { return x; }, [&] { return b.op("relu", {y}); });
  EXPECT_EQ(type(r), "tensor[rank=2; f32]");
}

TEST_F(BuilderTest, ASymbolOfAnArmDoesNotLeaveIt) {
  Operand c = b.param("c", scalar_type(boolean));
  Operand x = b.param("x", tensor_type(f32, {n}));
  Operand r = b.if_(
      c, [&] { return b.op("nonzero", {x}); }, [&] { return b.op("nonzero", {x}); });
  EXPECT_EQ(type(r), "tensor[rank=2; i64]");
}

TEST_F(BuilderTest, LoopsCarryTypedVariables) {
  Operand limit = b.param("limit", scalar_type(i64));
  Operand r = b.loop(
      {"i"}, {scalar_type(i64)}, {constant_int(0)},
      [&](const auto& v) {
        return b.op("less", {v[0], limit});
      },
      [&](const auto& v) {
        return b.op("add", {v[0], constant_int(1)});
      });
  EXPECT_EQ(type(r), "i64");
}

TEST_F(BuilderTest, CallsBindTheSymbolsOfParameters) {
  Signatures signatures;
  Dim k = Dim::symbol("k");
  signatures.functions.set("f", function_type({tensor_type(f32, {k, 4}), tensor_type(f32, {k})},
                                              tensor_type(f32, {k + 1})));
  b = Builder(signatures);
  b.at(Span::node("/test"));
  Operand x = b.param("x", tensor_type(f32, {n * 2, 4}));
  Operand y = b.param("y", tensor_type(f32, {m}));
  Operand any = b.param("any", tensor_type_unknown(f32));
  EXPECT_EQ(type(b.call_global("f", {x, y})), "tensor[2*n + 1; f32]");
  EXPECT_EQ(type(b.call_global("f", {any, y})), "tensor[k + 1; f32]");
  EXPECT_THAT(error([&] { b.call_global("f", {y, y}); }), HasSubstr("@f: argument 0"));
}

TEST_F(BuilderTest, ALiteralCanCallItself) {
  Operand f = b.function("down", {"n"}, {scalar_type(i64)}, scalar_type(i64), [&](const auto& v) {
    Operand c = b.op("less", {v[0], constant_int(1)});
    return b.if_(
        c, [&] { return v[0]; },
        [&] {
          return b.call_closure(v[1], {b.op("sub", {v[0], constant_int(1)})});
        });
  });
  EXPECT_EQ(type(f), "fn(i64) -> i64");
}

TEST_F(BuilderTest, ASpanIsDemanded) {
  Builder bare;
  Operand x = bare.param("x", tensor_type(f32, {n}));
  EXPECT_THAT(error([&] { bare.op("relu", {x}); }), HasSubstr("without a span"));
}

TEST_F(BuilderTest, AttributesAreCheckedAndCompleted) {
  Operand x = b.param("x", tensor_type(f32, {n}));
  Operand y = b.op("softmax", {x});
  FunctionRef f = b.finish("main", y);
  EXPECT_EQ(f->body->bindings[0]->value.as<Call>()->attrs.at("axis").as<int64_t>(), -1);
  EXPECT_THAT(error([&] {
                b.op("softmax", {x}, attrs({{"axes", 1}}));
              }),
              HasSubstr("operator 'softmax' has no attribute 'axes'"));
  EXPECT_THAT(error([&] {
                b.op("softmax", {x}, attrs({{"axis", "a"}}));
              }),
              HasSubstr("attribute 'axis' has the wrong kind"));
  EXPECT_THAT(error([&] { b.op("reshape", {x}); }), HasSubstr("needs the attribute 'shape'"));
  EXPECT_THAT(error([&] {
                b.op("softmax", {x}, attrs({{"axis", 1}}));
              }),
              HasSubstr("axis 1 is outside -1..0 of rank 1"));
}

}  // namespace
}  // namespace tenon::graph

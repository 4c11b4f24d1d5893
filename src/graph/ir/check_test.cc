// Rules that text can't break because the parser and the builder enforce them. The other rules have
// files in test/golden/graph/invalid.
#include "graph/ir/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "graph/ir/operators_testing.h"
#include "graph/ir/text.h"
#include "loop/kernel.h"

namespace tenon::graph {
namespace {

using ::testing::HasSubstr;

class CheckTest : public ::testing::Test {
 protected:
  CheckTest() {
    register_test_operators();
    register_graph_types();
    f->span = Span::node("/f");
    x = var("x", tensor_type(f32, {n}));
    f->params = {x};
    f->result_type = x->type;
    block->result = x;
  }

  static VarRef var(std::string_view name, TypeRef type) {
    auto v = make<Var>();
    v->name = name;
    v->type = std::move(type);
    return v;
  }
  Ref<Call> relu(Operand of) {
    auto c = make<Call>();
    c->callee = "relu";
    c->args = {of};
    return c;
  }
  VarRef bind(std::string_view name, ExprRef value, TypeRef type) {
    auto b = make<Binding>();
    b->var = var(name, type);
    b->value = value;
    b->span = Span::node("/b");
    block->bindings.push_back(b);
    return b->var;
  }
  std::string error(const loop::KernelRef& kernel = {}) {
    f->body = block;
    Map<String, FunctionRef> functions;
    functions.set("f", f);
    Map<String, loop::KernelInterfaceRef> kernels;
    if (kernel) kernels.set(kernel->name, kernel);
    try {
      check_module(make_module(functions, kernels, adts));
    } catch (const Error& e) {
      return e.render();
    }
    return "no error";
  }

  Dim n = Dim::symbol("n");
  VarRef x;
  Map<String, Ref<const AdtDefinition>> adts;
  Ref<FunctionExpr> f = make<FunctionExpr>();
  Ref<Block> block = make<Block>();
};

TEST_F(CheckTest, AcceptsAFunction) {
  block->result = bind("y", relu(x), x->type);
  EXPECT_EQ(error(), "no error");
}

TEST_F(CheckTest, OperandsAreVariablesOrConstants) {
  block->result = bind("y", relu(relu(x)), x->type);
  EXPECT_THAT(error(), HasSubstr("/b: an operand is neither a variable nor a constant"));
}

TEST_F(CheckTest, VariablesAreBoundBeforeUse) {
  block->result = bind("y", relu(var("z", x->type)), x->type);
  EXPECT_THAT(error(), HasSubstr("/b: %z is not bound here"));
}

TEST_F(CheckTest, VariablesAreBoundOnce) {
  bind("y", relu(x), x->type);
  block->bindings.push_back(block->bindings[0]);
  EXPECT_THAT(error(), HasSubstr("%y is bound twice"));
}

TEST_F(CheckTest, AVariableOfAnArmIsNotVisibleOutside) {
  auto inner = make<Block>();
  auto b = make<Binding>();
  b->var = var("inside", x->type);
  b->value = relu(x);
  b->span = Span::node("/i");
  inner->bindings = {b};
  inner->result = b->var;
  auto e = make<If>();
  e->condition = constant_bool(true);
  e->then_block = inner;
  auto other = make<Block>();
  other->result = x;
  e->else_block = other;
  bind("y", e, x->type);
  EXPECT_EQ(error(), "no error");
  block->result = b->var;
  EXPECT_THAT(error(), HasSubstr("%inside is not bound here"));
}

TEST_F(CheckTest, SymbolsAreBoundBeforeUse) {
  f->result_type = tensor_type(f32, {Dim::symbol("m")});
  EXPECT_THAT(error(), HasSubstr("the symbol m is not bound here"));
}

TEST_F(CheckTest, FieldsOfConstructorsHaveNoSymbols) {
  auto c = make<Constructor>();
  c->name = "A";
  c->fields = {x->type};
  auto adt = make<AdtDefinition>();
  adt->name = "t";
  adt->constructors = {c};
  adts.set("t", adt);
  EXPECT_THAT(error(), HasSubstr("a field of A has the size n, which nothing binds"));
}

TEST_F(CheckTest, TypesAreAsTheRulesInfer) {
  block->result = bind("y", relu(x), tensor_type(i64, {n}));
  EXPECT_THAT(error(), HasSubstr("the type of %y doesn't match its value"));
}

TEST_F(CheckTest, ConditionsAreProvedOrChecked) {
  VarRef z = var("z", tensor_type(f32, {Dim::symbol("m")}));
  f->params.push_back(z);
  auto c = make<Call>();
  c->callee = "add";
  c->args = {x, z};
  bind("y", c, tensor_type(f32, {bcast(n, Dim::symbol("m"))}));
  EXPECT_THAT(error(), HasSubstr("neither proved nor checked before"));
  EXPECT_THAT(error(), HasSubstr("check n ~ m"));
}

TEST_F(CheckTest, AttributesAreComplete) {
  auto c = make<Call>();
  c->callee = "softmax";
  c->args = {x};
  block->result = bind("y", c, x->type);
  EXPECT_THAT(error(), HasSubstr("its attributes aren't complete"));
}

TEST_F(CheckTest, AKernelTakesIntegersOnly) {
  auto kernel = make<loop::Kernel>();
  kernel->name = "k";
  kernel->body = loop::seq({});
  auto c = make<Call>();
  c->kind = CalleeKind::kKernel;
  c->callee = "k";
  c->attrs = attrs({{"step", Any(int64_t{1})}});
  block->result = bind("y", c, x->type);
  EXPECT_THAT(error(kernel), HasSubstr("kernel @k has no attribute 'step'"));
  c->attrs = attrs({{"integers", Any(int64_t{1})}});
  EXPECT_THAT(error(kernel), HasSubstr("kernel @k has no attribute 'integers'"));
}

TEST_F(CheckTest, ConstantsHaveTheTypeOfTheirValue) {
  auto c = make<Constant>();
  c->value = int64_t{3};
  c->type = scalar_type(f32);
  block->result = bind("y", relu(x), x->type);
  bind(
      "t",
      [&] {
        auto t = make<Tuple>();
        t->fields = {c};
        return t;
      }(),
      tuple_type({scalar_type(f32)}));
  EXPECT_THAT(error(), HasSubstr("a constant's type does not match its value"));
}

TEST_F(CheckTest, VariablesAreNotBoundAgain) {
  bind("y", x, x->type);
  EXPECT_THAT(error(), HasSubstr("a variable or a constant can't be bound to another variable"));
}

TEST_F(CheckTest, BindingsHaveASpan) {
  auto b = make<Binding>();
  b->var = var("y", x->type);
  b->value = relu(x);
  block->bindings.push_back(b);
  EXPECT_THAT(error(), HasSubstr("the binding of %y has no span"));
}

TEST_F(CheckTest, NestingIsBounded) {
  Ref<Block> inner = make<Block>();
  inner->result = x;
  for (int i = 0; i < kMaxNesting + 5; ++i) {
    auto e = make<If>();
    e->condition = constant_bool(true);
    e->then_block = inner;
    auto other = make<Block>();
    other->result = x;
    e->else_block = other;
    auto outer = make<Block>();
    auto b = make<Binding>();
    b->var = var("y", x->type);
    b->value = e;
    b->span = Span::node("/n");
    outer->bindings = {b};
    outer->result = b->var;
    inner = outer;
  }
  block = inner;
  EXPECT_THAT(error(), HasSubstr("nested deeper than 100 levels"));
}

}  // namespace
}  // namespace tenon::graph

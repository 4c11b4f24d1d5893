#include "import/onnx/custom_operator.h"

#include "import/onnx/import_testing.h"
#include "object/registry.h"

namespace tenon::onnx {
namespace {

using testing::HasSubstr;

constexpr char kScale[] = "com.acme:Scale";

class CustomOperator : public ImportModel {
 protected:
  // Registers a function that computes nodes of com.acme:Scale, and one that states this signature.
  static void bind(const std::string& signature) {
    bind_function([signature](const Array<Any>&, const Map<String, Any>&) -> Any {
      return String(signature);
    });
  }
  template <class F>
  static void bind_function(F signature) {
    register_typed(kScale, [] {});
    register_typed("com.acme:Scale.signature", signature);
  }
  void bind_again(const std::string& signature) {
    TearDown();
    bind(signature);
  }
  void TearDown() override {
    unregister_function(kScale);
    unregister_function("com.acme:Scale.signature");
  }

  static M model(const std::vector<Attribute>& attributes = {},
                 const std::vector<std::string>& inputs = {"x"}) {
    M m;
    m.input("x", {"rows", 4}).input("y", {4}).node("Scale", inputs, {"z"}, attributes, "com.acme");
    return m.output("z");
  }
  static std::string call_in(const M& m) {
    const std::string all = text(m);
    const size_t at = all.find("packed");
    return all.substr(at, all.find('\n', at) - at);
  }
  static std::string row(const M& m, const std::string& label) {
    const Error error = error_of(m);
    for (const Error::Row& r : error.rows()) {
      if (r.label == label) return r.text;
    }
    return "";
  }
};

TEST_F(CustomOperator, SymbolsOfTheSignatureAreSizesOfTheOperands) {
  bind("(tensor[n, m; f32], tensor[m; f32]) -> tensor[n, 2*m; f32]");
  EXPECT_EQ(
      text(model({}, {"x", "y"})),
      R"(fn @main(%x: tensor[rows, 4; f32], %y: tensor[4; f32]) -> tensor[rows, 8; f32] attrs(results=["z"]) {
  %0: tensor[*; f32] = packed "com.acme:Scale"(%x, %y, effect="pure") -> tensor[*; f32]
  %1: tensor[rows, 8; f32] = match_shape(%0, [rows, 8])
  %1
}
)");
}

TEST_F(CustomOperator, AttributesFollowTheOperandsInTheOrderOfTheirNames) {
  bind("(tensor[n, m; f32]) -> tensor[n, m; f32]");
  EXPECT_THAT(
      call_in(model({M::text("mode", "up"), M::number("factor", 2.5), M::integer("axis", -1),
                     M::list("pads", {1, -2}), M::numbers("rates", {0.5})})),
      HasSubstr(R"((%x, -1, 2.5, "up", tensor[2; i64]{1, -2} as "pads", tensor[1; f32]{0.5} as)"));
}

TEST_F(CustomOperator, ASignatureMayListAttributesWithDefaults) {
  bind(
      "(tensor[n, m; f32]; mode = \"down\", factor, exact = true, axis = -1, effect = \"ordered\")"
      " -> tensor[n, m; f32]");
  EXPECT_THAT(call_in(model({M::number("factor", 2.5)})),
              HasSubstr(R"((%x, "down", 2.5, true, -1, effect="ordered"))"));
  EXPECT_EQ(row(model(), "found"), "no attribute 'factor'");
  EXPECT_EQ(row(model({M::number("factor", 1), M::integer("other", 1)}), "found"),
            "attribute 'other'");
}

TEST_F(CustomOperator, ScalarsOfTheSignatureAreTypesOfAttributes) {
  bind("(tensor[n, m; f32], f64, bool) -> tensor[n, m; f32]");
  EXPECT_THAT(call_in(model({M::integer("a", 2), M::integer("b", 1)})),
              HasSubstr("(%x, f64(2.0), true, "));
  EXPECT_EQ(row(model({M::integer("a", 2)}), "expected"), "2, a scalar of the signature each");
  EXPECT_EQ(row(model({M::text("a", "two"), M::integer("b", 1)}), "found"),
            "attribute 'a': \"two\"");
}

TEST_F(CustomOperator, OtherSymbolsOfTheResultAreKnownOnceItReturns) {
  bind("(tensor[n, m; f32]) -> tensor[rows, m; f32]");
  EXPECT_EQ(
      text(model()),
      R"(fn @main(%x: tensor[rows, 4; f32], %y: tensor[4; f32]) -> tensor[rank=2; f32] attrs(results=["z"]) {
  %0: tensor[*; f32] = packed "com.acme:Scale"(%x, effect="pure") -> tensor[*; f32]
  %1: tensor[rows_0, 4; f32] = match_shape(%0, [rows_0, 4])
  %1
}
)");
}

TEST_F(CustomOperator, AFunctionMayStateTheTypesOfANode) {
  bind_function([](const Array<Any>& types, const Map<String, Any>& attributes) -> Any {
    EXPECT_EQ(types.size(), 2u);
    EXPECT_TRUE(types[1].is_none());
    EXPECT_EQ(attributes.at(String("axis")).as<int64_t>(), 1);
    return types[0];
  });
  EXPECT_THAT(call_in(model({M::integer("axis", 1)}, {"x", ""})),
              HasSubstr("(%x, (), 1, effect=\"pure\") -> tensor[*; f32]"));
}

TEST_F(CustomOperator, ItGoesBeforeAFunctionOfTheModel) {
  bind("(tensor[n, m; f32]) -> tensor[n, m; f32]");
  M m = model();
  ModelFunction f;
  f.domain = "com.acme";
  f.name = "Scale";
  f.inputs = f.outputs = {"a"};
  m.model.functions.push_back(f);
  EXPECT_THAT(text(m), HasSubstr("packed"));
}

TEST_F(CustomOperator, OperandsMustFitTheSignature) {
  bind("(tensor[n, n; f32]) -> tensor[n, n; f32]");
  EXPECT_THAT(text(model()), HasSubstr("check 4 == rows, \"operand 0 of com.acme:Scale: size"));
  bind_again("(tensor[n; f32]) -> tensor[n; f32]");
  EXPECT_EQ(error_of(model()).message(), "operand 0 of com.acme:Scale has the wrong type");
  EXPECT_EQ(row(model(), "found"), "tensor[rows, 4; f32]");
  bind_again("(tensor[n, m; f32], tensor[m; f32]) -> tensor[n; f32]");
  EXPECT_EQ(error_of(model()).message(), "the node does not fit the signature of com.acme:Scale");
  EXPECT_EQ(row(model(), "expected"), "2");
  EXPECT_EQ(row(model(), "where"), "node '/Scale' (com.acme:Scale) of m.onnx");
}

TEST_F(CustomOperator, SeveralResultsAreATuple) {
  bind("(tensor[n, m; f32]) -> (tensor[n; i64], tensor[m; f32])");
  EXPECT_THAT(text(model()), HasSubstr("-> (tensor[*; i64], tensor[*; f32])"));
  EXPECT_THAT(text(model()), HasSubstr("tensor[4; f32] = match_shape("));
  bind_again("(tensor[n, m; f32]) -> (tensor[n; i64], i64)");
  EXPECT_EQ(row(model(), "found"), "a result of type i64");
}

TEST_F(CustomOperator, WhatIsNoSignatureIsRefused) {
  const auto message_for = [&](const std::string& signature) {
    bind_again(signature);
    return error_of(model()).message();
  };
  EXPECT_EQ(message_for("(tensor[n; f32]"), "this is not a signature");
  EXPECT_EQ(message_for("() tensor[n; f32]"), "this is not a signature");
  EXPECT_EQ(message_for("(;;) -> tensor[n; f32]"),
            "a signature has at most one semicolon outside of its types");
  EXPECT_EQ(message_for("(; = 3) -> tensor[n; f32]"), "the name of an attribute is missing");
  EXPECT_EQ(message_for("(; a = what) -> tensor[n; f32]"),
            "the attribute 'a' has an invalid default");
  EXPECT_EQ(row(model(), "signature"), "(; a = what) -> tensor[n; f32]");
  TearDown();
  bind_function([](const Array<Any>&, const Map<String, Any>&) -> Any { return 3; });
  EXPECT_EQ(error_of(model()).message(),
            "the function com.acme:Scale.signature returned neither text nor a type");
  unregister_function("com.acme:Scale.signature");
  EXPECT_THAT(error_of(model()).render(),
              HasSubstr("the function com.acme:Scale is registered, but not "
                        "com.acme:Scale.signature"));
}

TEST_F(CustomOperator, AnUnknownOperatorSaysHowToBindIt) {
  EXPECT_THAT(error_of(model()).render(),
              HasSubstr("a registered function 'com.acme:Scale' would compute that operator"));
}

TEST_F(CustomOperator, OnlyOtherDomainsAreBound) {
  register_typed("Relu", [] {});
  M m;
  m.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_THAT(text(m), HasSubstr("relu(%x)"));
  unregister_function("Relu");
}

TEST_F(ImportModel, ValuesOfNodesAreKnownByTheirNames) {
  M m;
  m.input("x", {2}).node("Relu", {"b"}, {"y"}).node("Exp", {"x"}, {"b"}).output("y");
  const ImportResult result = import_model(m.model);
  ASSERT_EQ(result.values.size(), 2u);
  EXPECT_EQ(result.values[0].name, "b");
  EXPECT_EQ(result.values[0].op, "Exp");
  EXPECT_EQ(result.values[1].node, "/Relu");
  EXPECT_EQ(result.values[1].value.get(), result.module->functions.at("main")->body->result.get());
}

}  // namespace
}  // namespace tenon::onnx

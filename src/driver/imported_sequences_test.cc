// What imported models with sequences, optional values and loops over them compute: each is built
// by hand, imported and evaluated, with what is known at import and what only at run time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "evaluate/reference_evaluator.h"
#include "import/onnx/import_model.h"
#include "import/onnx/model_maker_testing.h"
#include "object/cell.h"

namespace tenon::driver {
namespace {

using onnx::Graph;
using onnx::ModelMaker;
using onnx::ValueType;
using testing::HasSubstr;
using Ints = std::vector<int64_t>;
using M = ModelMaker;

constexpr int kInt64 = 7, kBool = 9;

Tensor list(const Ints& values) {
  Ints shape = {static_cast<int64_t>(values.size())};
  return Tensor::copy_of(std::span<const int64_t>(shape), i64, std::span<const int64_t>(values));
}

Tensor number(int64_t value) {
  return Tensor::copy_of(std::span<const int64_t>(), i64, std::span<const int64_t>(&value, 1));
}

Ints elements(const Any& tensor) {
  const auto t = tensor.as<Tensor>();
  return Ints(t.data_as<int64_t>(), t.data_as<int64_t>() + t.count());
}

Ints shape_of(const Any& tensor) {
  const auto t = tensor.as<Tensor>();
  return Ints(t.shape().begin(), t.shape().end());
}

Array<Any> sequence(const std::vector<Ints>& lists) {
  Array<Any> out;
  for (const Ints& l : lists) out.push_back(Any(list(l)));
  return out;
}

std::vector<Ints> lists(const Any& sequence) {
  std::vector<Ints> out;
  for (const Any& x : sequence.as<Array<Any>>()) out.push_back(elements(x));
  return out;
}

std::vector<Any> run(const M& m, const std::vector<Any>& args) {
  initialise();
  const graph::Module module = onnx::import_model(m.model).module;
  graph::ReferenceEvaluator evaluator(codegen::baseline_target());
  return evaluator.run(module, module->functions.at("main"), args);
}

std::string error_of(const M& m, const std::vector<Any>& args) {
  try {
    run(m, args);
  } catch (const Error& e) {
    return e.render();
  }
  return "no error";
}

Graph body(const std::vector<onnx::Value>& inputs, const std::vector<onnx::Node>& nodes,
           const std::vector<std::string>& outputs) {
  Graph g;
  g.inputs = inputs;
  g.nodes = nodes;
  for (const std::string& name : outputs) {
    onnx::Value v;
    v.name = name;
    g.outputs.push_back(v);
  }
  return g;
}

onnx::Value lists_named(const std::string& name) {
  return M::sequence_of(M::value(name, kInt64, {"n"}));
}

// A model with the sequence `xs` of lists, which is a parameter, or made of parameters.
struct Given {
  M m = M(18);
  std::vector<Any> args;
};

Given with_sequence(const std::vector<Ints>& xs, bool known) {
  Given out;
  if (!known) {
    out.m.model.graph.inputs.push_back(lists_named("xs"));
    out.args.emplace_back(sequence(xs));
    return out;
  }
  if (xs.empty()) {
    out.m.node("SequenceEmpty", {}, {"xs"}, {M::integer("dtype", kInt64)});
    return out;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < xs.size(); ++i) {
    names.push_back(cat("x", i));
    out.m.input(names.back(), {cat("n", i).c_str()}, kInt64);
    out.args.emplace_back(list(xs[i]));
  }
  out.m.node("SequenceConstruct", names, {"xs"});
  return out;
}

void add_position(Given& g, int64_t p, bool known) {
  if (known) {
    g.m.ints("p", {p}, true);
  } else {
    g.m.input("p", {}, kInt64);
    g.args.emplace_back(number(p));
  }
}

constexpr std::pair<bool, bool> kKnown[] = {
    {true, true}, {true, false}, {false, true}, {false, false}};

// ---- positions ----

const std::vector<Ints> kThree = {{1}, {2, 2}, {3, 3, 3}};

TEST(ImportedSequence, PositionsCountFromBothEnds) {
  for (const auto& [sequence_known, position_known] : kKnown) {
    for (int64_t p = -3; p <= 3; ++p) {
      SCOPED_TRACE(cat(p, sequence_known ? ", known sequence" : "",
                       position_known ? ", known position" : ""));
      const auto at = kThree.begin() + (p < 0 ? p + 3 : p);
      Given inserted = with_sequence(kThree, sequence_known);
      add_position(inserted, p, position_known);
      inserted.m.ints("y", {9}).node("SequenceInsert", {"xs", "y", "p"}, {"out"}).output("out");
      std::vector<Ints> expected(kThree.begin(), at);
      expected.push_back({9});
      expected.insert(expected.end(), at, kThree.end());
      EXPECT_EQ(lists(run(inserted.m, inserted.args)[0]), expected);
      if (p == 3) continue;

      Given taken = with_sequence(kThree, sequence_known);
      add_position(taken, p, position_known);
      taken.m.node("SequenceAt", {"xs", "p"}, {"out"}).output("out");
      EXPECT_EQ(elements(run(taken.m, taken.args)[0]), *at);

      Given erased = with_sequence(kThree, sequence_known);
      add_position(erased, p, position_known);
      erased.m.node("SequenceErase", {"xs", "p"}, {"out"}).output("out");
      expected.assign(kThree.begin(), at);
      expected.insert(expected.end(), at + 1, kThree.end());
      EXPECT_EQ(lists(run(erased.m, erased.args)[0]), expected);
    }
  }
}

TEST(ImportedSequence, PositionsOutOfRangeFailWhenTheyAreUsed) {
  for (const char* op : {"SequenceAt", "SequenceErase"}) {
    for (const int64_t p : {-4, 3}) {
      Given g = with_sequence(kThree, false);
      add_position(g, p, false);
      g.m.node(op, {"xs", "p"}, {"out"}).output("out");
      EXPECT_THAT(error_of(g.m, g.args), HasSubstr("out of range")) << op << " " << p;
    }
  }
}

TEST(ImportedSequence, WithoutAPositionTheLastElementIsMeant) {
  for (const bool known : {true, false}) {
    Given g = with_sequence(kThree, known);
    g.m.ints("y", {9}).node("SequenceErase", {"xs"}, {"two"});
    g.m.node("SequenceInsert", {"two", "y"}, {"out"}).node("SequenceLength", {"out"}, {"length"});
    g.m.output("out").output("length");
    const auto results = run(g.m, g.args);
    EXPECT_EQ(lists(results[0]), (std::vector<Ints>{{1}, {2, 2}, {9}}));
    EXPECT_EQ(elements(results[1]), Ints{3});
  }
}

// ---- between tensors and sequences ----

TEST(ImportedSequence, SplitsAxesOfAnySize) {
  struct Case {
    int64_t size;
    Ints split;  // one number: the size of each piece
    std::vector<Ints> pieces;
  };
  std::vector<Ints> hundred;
  for (int64_t i = 0; i < 100; ++i) hundred.push_back({i});
  const Case cases[] = {{5, {2}, {{0, 1}, {2, 3}, {4}}},
                        {4, {1, 0, 3}, {{0}, {}, {1, 2, 3}}},
                        {3, {7}, {{0, 1, 2}}},
                        {100, {1}, hundred}};
  for (const Case& c : cases) {
    for (const auto& [size_known, split_known] : kKnown) {
      Ints all;
      for (int64_t i = 0; i < c.size; ++i) all.push_back(i);
      M m(18);
      std::vector<Any> args = {list(all)};
      if (size_known) {
        m.input("x", {static_cast<int>(c.size)}, kInt64);
      } else {
        m.input("x", {"n"}, kInt64);
      }
      const bool scalar = c.split.size() == 1;
      if (split_known) {
        m.ints("split", c.split, scalar);
      } else if (scalar) {
        m.input("split", {}, kInt64);
        args.emplace_back(number(c.split[0]));
      } else {
        m.input("split", {"pieces"}, kInt64);
        args.emplace_back(list(c.split));
      }
      m.node("SplitToSequence", {"x", "split"}, {"out"}).output("out");
      EXPECT_EQ(lists(run(m, args)[0]), c.pieces)
          << c.size << (size_known ? " known" : "") << (split_known ? " split known" : "");
    }
  }
}

TEST(ImportedSequence, SplitsThatDontAddUpFail) {
  M m(18);
  m.input("x", {"n"}, kInt64).input("split", {"pieces"}, kInt64);
  m.node("SplitToSequence", {"x", "split"}, {"out"}).output("out");
  EXPECT_THAT(error_of(m, {list({1, 2, 3}), list({1, 1})}),
              HasSubstr("SplitToSequence: the sum of the sizes"));
  EXPECT_THAT(error_of(m, {list({1, 2, 3}), list({2, 2})}),
              HasSubstr("SplitToSequence: the sum of the sizes"));
}

TEST(ImportedSequence, WithoutSizesAnAxisCanBeDropped) {
  for (const bool known : {true, false}) {
    M m(18);
    if (known) {
      m.input("x", {2, 2}, kInt64);
    } else {
      m.input("x", {"n", 2}, kInt64);
    }
    m.node("SplitToSequence", {"x"}, {"out"}, {M::integer("keepdims", 0)}).output("out");
    const Ints shape = {2, 2}, values = {1, 2, 3, 4};
    const Any x =
        Tensor::copy_of(std::span<const int64_t>(shape), i64, std::span<const int64_t>(values));
    EXPECT_EQ(lists(run(m, {x})[0]), (std::vector<Ints>{{1, 2}, {3, 4}}));
  }
}

TEST(ImportedSequence, ConcatenatesAndStacksAnyNumberOfElements) {
  for (const bool known : {true, false}) {
    for (int64_t n = 1; n <= 9; ++n) {
      std::vector<Ints> unequal, equal;
      Ints all, rows;
      for (int64_t i = 0; i < n; ++i) {
        unequal.emplace_back(static_cast<size_t>(i % 3), i);
        all.insert(all.end(), unequal.back().begin(), unequal.back().end());
        equal.push_back({i, -i});
        rows.push_back(i);
        rows.push_back(-i);
      }
      Given g = with_sequence(unequal, known);
      g.m.node("ConcatFromSequence", {"xs"}, {"out"}, {M::integer("axis", 0)}).output("out");
      EXPECT_EQ(elements(run(g.m, g.args)[0]), all) << n;
      Given stack = with_sequence(equal, known);
      stack.m.node("ConcatFromSequence", {"xs"}, {"out"},
                   {M::integer("axis", 0), M::integer("new_axis", 1)});
      stack.m.output("out");
      const Any stacked = run(stack.m, stack.args)[0];
      EXPECT_EQ(elements(stacked), rows) << n;
      EXPECT_EQ(shape_of(stacked), (Ints{n, 2})) << n;
      Given last = with_sequence(equal, known);
      last.m.node("ConcatFromSequence", {"xs"}, {"out"},
                  {M::integer("axis", -1), M::integer("new_axis", 1)});
      last.m.output("out");
      EXPECT_EQ(shape_of(run(last.m, last.args)[0]), (Ints{2, n})) << n;
    }
  }
}

TEST(ImportedSequence, ConcatenatingNothingFails) {
  for (const int64_t new_axis : {0, 1}) {
    Given g = with_sequence({}, false);
    g.m.node("ConcatFromSequence", {"xs"}, {"out"},
             {M::integer("axis", 0), M::integer("new_axis", new_axis)});
    g.m.output("out");
    EXPECT_THAT(error_of(g.m, g.args), HasSubstr("ConcatFromSequence: the length of the sequence"));
  }
}

TEST(ImportedSequence, MapsItsBodyOverTheElements) {
  for (const bool known : {true, false}) {
    for (const std::vector<Ints>& xs : {kThree, std::vector<Ints>{}}) {
      Given g = with_sequence(xs, known);
      g.m.input("y", {1}, kInt64);
      g.args.emplace_back(list({10}));
      g.m.node("SequenceMap", {"xs", "y", "xs"}, {"out", "sizes"},
               {M::body("body", body({M::value("a", kInt64, {"n"}), M::value("b", kInt64, {1}),
                                      M::value("c", kInt64, {"n"})},
                                     {M::make_node("Add", {"a", "b"}, {"d"}),
                                      M::make_node("Size", {"c"}, {"size"})},
                                     {"d", "size"}))});
      g.m.output("out").output("sizes");
      const auto results = run(g.m, g.args);
      EXPECT_EQ(lists(results[0]), xs.empty() ? std::vector<Ints>{}
                                              : (std::vector<Ints>{{11}, {12, 12}, {13, 13, 13}}));
      EXPECT_EQ(lists(results[1]),
                xs.empty() ? std::vector<Ints>{} : (std::vector<Ints>{{1}, {2}, {3}}));
    }
  }
}

// ---- loops ----

// The number of iterations, which is a parameter or a constant.
void add_count(Given& g, int64_t count, bool known) {
  if (known) {
    g.m.ints("count", {count}, true);
  } else {
    g.m.input("count", {}, kInt64);
    g.args.emplace_back(number(count));
  }
}

const std::vector<onnx::Value> kLoopInputs = {M::value("i", kInt64, {}), M::value("go", kBool, {})};

std::vector<onnx::Value> loop_inputs(const onnx::Value& state) {
  std::vector<onnx::Value> all = kLoopInputs;
  all.push_back(state);
  return all;
}

TEST(ImportedLoop, FillsAnEmptySequence) {
  for (const bool known : {true, false}) {
    for (const int64_t count : {0, 1, 3, 40}) {
      Given g;
      add_count(g, count, known);
      g.m.ints("one", {1}).node("SequenceEmpty", {}, {"none"}, {M::integer("dtype", kInt64)});
      g.m.node("Loop", {"count", "", "none"}, {"all"},
               {M::body("body", body(loop_inputs(lists_named("xs")),
                                     {M::make_node("Reshape", {"i", "one"}, {"x"}),
                                      M::make_node("SequenceInsert", {"xs", "x"}, {"longer"})},
                                     {"go", "longer"}))});
      // The loop knows the rank of what it made.
      g.m.node("SequenceInsert", {"all", "one"}, {"more"});
      g.m.node("ConcatFromSequence", {"more"}, {"out"}, {M::integer("axis", 0)}).output("out");
      Ints expected;
      for (int64_t i = 0; i < count; ++i) expected.push_back(i);
      expected.push_back(1);
      EXPECT_EQ(elements(run(g.m, g.args)[0]), expected) << count;
    }
  }
}

TEST(ImportedLoop, InsertsAtTheFrontOfWhatBeganEmpty) {
  for (const bool known : {true, false}) {
    for (const int64_t count : {1, 3, 40}) {
      Given g;
      add_count(g, count, known);
      g.m.ints("one", {1}).ints("front", {0}, true);
      g.m.node("SequenceEmpty", {}, {"none"}, {M::integer("dtype", kInt64)});
      g.m.node("Loop", {"count", "", "none"}, {"all"},
               {M::body("body", body(loop_inputs(lists_named("xs")),
                                     {M::make_node("Reshape", {"i", "one"}, {"x"}),
                                      M::make_node("SequenceInsert", {"xs", "x", "front"}, {"ys"})},
                                     {"go", "ys"}))});
      g.m.node("ConcatFromSequence", {"all"}, {"out"}, {M::integer("axis", 0)}).output("out");
      Ints expected;
      for (int64_t i = count; i-- > 0;) expected.push_back(i);
      EXPECT_EQ(elements(run(g.m, g.args)[0]), expected) << count;
    }
  }
}

// An iteration makes an element of the one before, or of all, if there are any.
Given of_previous_elements(int64_t count, bool known, const std::vector<onnx::Node>& made) {
  Given g;
  add_count(g, count, known);
  g.m.ints("one", {1}).ints("zero", {0}, true).ints("last", {-1}, true);
  g.m.node("SequenceEmpty", {}, {"none"}, {M::integer("dtype", kInt64)});
  Graph then = body({}, made, {"a"});
  Graph otherwise = body({}, {M::make_node("Identity", {"x"}, {"b"})}, {"b"});
  g.m.node("Loop", {"count", "", "none"}, {"out"},
           {M::body("body", body(loop_inputs(lists_named("xs")),
                                 {M::make_node("Reshape", {"i", "one"}, {"x"}),
                                  M::make_node("SequenceLength", {"xs"}, {"length"}),
                                  M::make_node("Greater", {"length", "zero"}, {"some"}),
                                  M::make_node("If", {"some"}, {"y"},
                                               {M::body("then_branch", then),
                                                M::body("else_branch", otherwise)}),
                                  M::make_node("SequenceInsert", {"xs", "y"}, {"longer"})},
                                 {"go", "longer"}))});
  g.m.output("out");
  return g;
}

TEST(ImportedLoop, ReadsElementsOfWhatBeganEmpty) {
  const onnx::Node previous = M::make_node("SequenceAt", {"xs", "last"}, {"p"});
  const onnx::Node sum = M::make_node("Add", {"p", "x"}, {"a"});
  const onnx::Node longer = M::make_node("Concat", {"p", "x"}, {"a"}, {M::integer("axis", 0)});
  const onnx::Node all = M::make_node("ConcatFromSequence", {"xs"}, {"a"}, {M::integer("axis", 0)});
  for (const bool known : {true, false}) {
    const auto found = [&](const std::vector<onnx::Node>& made) {
      const Given g = of_previous_elements(4, known, made);
      return lists(run(g.m, g.args)[0]);
    };
    EXPECT_EQ(found({previous, sum}), (std::vector<Ints>{{0}, {1}, {3}, {6}}));
    EXPECT_EQ(found({previous, longer}), (std::vector<Ints>{{0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}}));
    EXPECT_EQ(found({all}), (std::vector<Ints>{{0}, {0}, {0, 0}, {0, 0, 0, 0}}));
  }
}

// Yields the indices of the elements that aren't 0, whose number only the iteration knows.
Given yields_places(int64_t count, bool known, const Ints& x) {
  Given g;
  add_count(g, count, known);
  g.m.input("x", {"n"}, kInt64);
  g.args.emplace_back(list(x));
  Graph places = body(
      kLoopInputs,
      {M::make_node("NonZero", {"x"}, {"places"}), M::make_node("Add", {"places", "i"}, {"y"})},
      {"go", "y"});
  places.outputs[1].type = M::value("y", kInt64, {1, "k"}).type;
  g.m.node("Loop", {"count", ""}, {"out"}, {M::body("body", places)}).output("out");
  return g;
}

TEST(ImportedLoop, TakesTheShapeOfItsOutputsFromTheIterations) {
  for (const bool known : {true, false}) {
    const Given three = yields_places(3, known, {0, 5, 5});
    const Any found = run(three.m, three.args)[0];
    EXPECT_EQ(shape_of(found), (Ints{3, 1, 2}));
    EXPECT_EQ(elements(found), (Ints{1, 2, 2, 3, 3, 4}));
    // As ONNX Runtime: sizes that only an iteration knows are 0.
    const Given none = yields_places(0, known, {0, 5, 5});
    EXPECT_EQ(shape_of(run(none.m, none.args)[0]), (Ints{0, 1, 0}));
    const Given empty = yields_places(2, known, {0, 0});
    EXPECT_EQ(shape_of(run(empty.m, empty.args)[0]), (Ints{2, 1, 0}));
  }
}

TEST(ImportedLoop, IterationsThatYieldOtherShapesFail) {
  Given g;
  add_count(g, 3, false);
  g.m.ints("zero", {0}).ints("axes", {0}).input("x", {"n"}, kInt64);
  g.args.emplace_back(list({1, 2, 3}));
  g.m.node("Loop", {"count", ""}, {"out"},
           {M::body("body", body(kLoopInputs,
                                 {M::make_node("Unsqueeze", {"i", "axes"}, {"end"}),
                                  M::make_node("Slice", {"x", "zero", "end"}, {"y"})},
                                 {"go", "y"}))});
  g.m.output("out");
  EXPECT_THAT(error_of(g.m, g.args),
              HasSubstr("Loop: elements of an output, by iterations, along axis 0"));
}

TEST(ImportedLoop, VariablesMayChangeTheirRankInCertainIterations) {
  // Adds an axis in the first iteration only.
  for (const int64_t count : {1, 2, 20}) {
    Given g;
    add_count(g, count, true);
    g.m.input("x", {"n"}, kInt64).ints("shape", {1, -1});
    g.args.emplace_back(list({7, 8}));
    g.m.node("Loop", {"count", "", "x"}, {"out", "sums"},
             {M::body("body", body(loop_inputs(M::value("v", kInt64, {})),
                                   {M::make_node("Reshape", {"v", "shape"}, {"w"}),
                                    M::make_node("Add", {"i", "i"}, {"twice"})},
                                   {"go", "w", "twice"}))});
    g.m.output("out").output("sums");
    const auto results = run(g.m, g.args);
    EXPECT_EQ(shape_of(results[0]), (Ints{1, 2}));
    EXPECT_EQ(shape_of(results[1]), (Ints{count}));
    EXPECT_EQ(elements(results[1]).back(), 2 * (count - 1));
  }
}

TEST(ImportedLoop, VariablesOfAnyRankPassThrough) {
  for (const int64_t count : {0, 1, 2}) {
    Given g;
    add_count(g, count, false);
    g.m.input("x", {"n"}, kInt64).ints("other", {1, 2, 3, 4}).ints("shape", {2, 2});
    g.args.emplace_back(list({7, 8}));
    g.m.node(
        "Loop", {"count", "", "x"}, {"out"},
        {M::body("body", body(loop_inputs(M::value("v", kInt64, {})),
                              {M::make_node("Reshape", {"other", "shape"}, {"w"})}, {"go", "w"}))});
    g.m.output("out");
    EXPECT_EQ(shape_of(run(g.m, g.args)[0]), count == 0 ? Ints{2} : (Ints{2, 2})) << count;
  }
}

// ---- optional values ----

onnx::Attribute list_type() {
  onnx::Attribute a;
  a.name = "type";
  a.kind = onnx::Attribute::kType;
  a.type = std::make_shared<ValueType>(M::value("", kInt64, {"n"}).type);
  return a;
}

TEST(ImportedOptional, IsAbsentInOneBranch) {
  M m(18);
  m.input("c", {}, kBool).input("x", {"n"}, kInt64).ints("zero", {0});
  m.node("If", {"c"}, {"maybe"},
         {M::body("then_branch", body({}, {M::make_node("Optional", {"x"}, {"a"})}, {"a"})),
          M::body("else_branch",
                  body({}, {M::make_node("Optional", {}, {"b"}, {list_type()})}, {"b"}))});
  m.node("OptionalHasElement", {"maybe"}, {"has"});
  m.node("If", {"has"}, {"out"},
         {M::body("then_branch",
                  body({}, {M::make_node("OptionalGetElement", {"maybe"}, {"d"})}, {"d"})),
          M::body("else_branch", body({}, {M::make_node("Identity", {"zero"}, {"e"})}, {"e"}))});
  m.node("Add", {"out", "zero"}, {"sum"}).output("sum").output("has").output("maybe");
  const auto condition = [](bool is) {
    Tensor t = Tensor::empty(std::span<const int64_t>(), boolean);
    *t.data_as<bool>() = is;
    return t;
  };
  auto results = run(m, {condition(true), list({3, 4})});
  EXPECT_EQ(elements(results[0]), (Ints{3, 4}));
  EXPECT_TRUE(*results[1].as<Tensor>().data_as<bool>());
  EXPECT_EQ(elements(*results[2].as<Ref<CellObj>>()->begin()), (Ints{3, 4}));
  results = run(m, {condition(false), list({3, 4})});
  EXPECT_EQ(elements(results[0]), Ints{0});
  EXPECT_FALSE(*results[1].as<Tensor>().data_as<bool>());
  EXPECT_EQ(results[2].as<Ref<CellObj>>()->size, 0);
}

TEST(ImportedOptional, ReadingAnAbsentValueFails) {
  M m(18);
  onnx::Value x = M::value("x", kInt64, {"n"});
  auto held = std::make_shared<ValueType>(x.type);
  x.type = ValueType();
  x.type.kind = ValueType::kOptional;
  x.type.held = held;
  m.model.graph.inputs.push_back(x);
  m.node("OptionalGetElement", {"x"}, {"y"}).node("Add", {"y", "y"}, {"out"}).output("out");
  const Any value = list({3, 4});
  const Any some = CellObj::of(1, std::span<const Any>(&value, 1));
  EXPECT_EQ(elements(run(m, {some})[0]), (Ints{6, 8}));
  EXPECT_THAT(error_of(m, {CellObj::of(0, size_t{0})}),
              HasSubstr("OptionalGetElement: values in the optional"));
}

TEST(ImportedOptional, PlainValuesAreAlwaysThere) {
  M m(18);
  m.input("x", {2}, kInt64).node("OptionalHasElement", {"x"}, {"has"});
  m.node("OptionalHasElement", {""}, {"absent"}).node("OptionalGetElement", {"x"}, {"y"});
  m.output("has").output("absent").output("y");
  const auto results = run(m, {list({3, 4})});
  EXPECT_TRUE(*results[0].as<Tensor>().data_as<bool>());
  EXPECT_FALSE(*results[1].as<Tensor>().data_as<bool>());
  EXPECT_EQ(elements(results[2]), (Ints{3, 4}));
}

// A loop's variable begins absent and becomes a plain sequence, as in ONNX's own test.
TEST(ImportedOptional, BecomesPresentInALoop) {
  for (const bool known : {true, false}) {
    Given g;
    add_count(g, 2, known);
    g.m.ints("first", {5}).ints("one", {1});
    g.m.node("Optional", {}, {"none"}, {[] {
               onnx::Attribute a = list_type();
               ValueType sequence;
               sequence.kind = ValueType::kSequence;
               sequence.held = a.type;
               a.type = std::make_shared<ValueType>(sequence);
               return a;
             }()});
    Graph then = body({}, {M::make_node("OptionalGetElement", {"maybe"}, {"a"})}, {"a"});
    Graph otherwise = body({}, {M::make_node("SequenceConstruct", {"first"}, {"b"})}, {"b"});
    onnx::Value state;
    state.name = "maybe";
    g.m.node("Loop", {"count", "", "none"}, {"out"},
             {M::body("body", body(loop_inputs(state),
                                   {M::make_node("OptionalHasElement", {"maybe"}, {"has"}),
                                    M::make_node("If", {"has"}, {"xs"},
                                                 {M::body("then_branch", then),
                                                  M::body("else_branch", otherwise)}),
                                    M::make_node("Reshape", {"i", "one"}, {"x"}),
                                    M::make_node("SequenceInsert", {"xs", "x"}, {"longer"})},
                                   {"go", "longer"}))});
    g.m.output("out");
    EXPECT_EQ(lists(run(g.m, g.args)[0]), (std::vector<Ints>{{5}, {0}, {1}}));
  }
}

// ---- Scan of opset 8 ----

TEST(ImportedScan, OfABatchEndsWithEachSequence) {
  for (const bool backwards : {false, true}) {
    M m(8);
    m.input("lengths", {"batch"}, kInt64).input("start", {"batch", 1}, kInt64);
    m.input("x", {"batch", 3, 1}, kInt64);
    m.node("Scan", {"lengths", "start", "x"}, {"last", "sums"},
           {M::integer("num_scan_inputs", 1), M::list("directions", {backwards ? 1 : 0}),
            M::body("body", body({M::value("sum", kInt64, {1}), M::value("next", kInt64, {1})},
                                 {M::make_node("Add", {"sum", "next"}, {"out"}),
                                  M::make_node("Identity", {"out"}, {"y"})},
                                 {"out", "y"}))});
    m.output("last").output("sums");
    auto of_shape = [](const Ints& shape, const Ints& values) {
      return Tensor::copy_of(std::span<const int64_t>(shape), i64,
                             std::span<const int64_t>(values));
    };
    const auto results =
        run(m, {list({3, 1}), of_shape({2, 1}, {0, 100}), of_shape({2, 3, 1}, {1, 2, 3, 4, 5, 6})});
    EXPECT_EQ(elements(results[0]), (Ints{6, 104}));
    EXPECT_EQ(elements(results[1]),
              backwards ? (Ints{3, 5, 6, 104, 0, 0}) : (Ints{1, 3, 6, 104, 0, 0}));
    EXPECT_EQ(shape_of(results[1]), (Ints{2, 3, 1}));
  }
}

}  // namespace
}  // namespace tenon::driver

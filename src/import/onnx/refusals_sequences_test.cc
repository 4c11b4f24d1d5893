// Refusals of sequences, optional values, and control flow that carries them.
#include "graph/op/register.h"
#include "import/onnx/refusals_testing.h"

namespace tenon::onnx {
namespace {

class RefusalsOfSequences : public Refusals {
 protected:
  static void SetUpTestSuite() { graph::register_operators(); }
};

Attribute type_of(ValueType type) {
  Attribute a;
  a.name = "type";
  a.kind = Attribute::kType;
  a.type = std::make_shared<ValueType>(std::move(type));
  return a;
}

// A loop's body that makes `made` of the variable in2.
Attribute loop_of(const Node& made, bool yields = false) {
  std::vector<std::string> outputs = {"c", "v"};
  if (yields) outputs = {"c", "in2", "v"};
  return M::body("body", body(3, {identity("in1", "c"), made}, outputs));
}

TEST_F(RefusalsOfSequences, Sequences) {
  broken({
      {"SequenceConstruct", 17, {}, {}, "no operand", "one or more tensors"},
      {"SequenceConstruct",
       17,
       {"f 2", "i 2"},
       {},
       "an element of type tensor[2; i64] in a sequence of tensor[2; f32]",
       "elements of one type"},
      {"SequenceAt", 17, {"f 2", "= 0"}, {}, "an operand of type tensor[2; f32]", "a sequence"},
      {"SequenceInsert",
       17,
       {"[f 2", "i 2"},
       {},
       "an element of type tensor[2; i64] for a sequence of tensor[2; f32]",
       "an element of the sequence's type"},
      {"SplitToSequence",
       17,
       {"f 4", "i 2 2"},
       {},
       "a split of rank 2",
       "a size, or a list of sizes"},
  });
  unsupported({
      {"SequenceEmpty", 17, {}, {M::integer("dtype", 27)}, "dtype=float6e2m3 is not implemented"},
      {"ConcatFromSequence",
       17,
       {"[f ?"},
       {M::integer("axis", 0)},
       "elements whose rank is known only at run time not implemented"},
  });
}

// `xs` is a sequence of `count` constants.
ModelMaker known_sequence(size_t count) {
  M m(17);
  m.ints("x", {1, 2});
  if (count == 0) {
    m.node("SequenceEmpty", {}, {"xs"});
  } else {
    m.node("SequenceConstruct", std::vector<std::string>(count, "x"), {"xs"});
  }
  return m;
}

Error error_of(const M& m) {
  try {
    import_model(m.model);
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorKind::Internal, "it was imported");
}

std::string row(const Error& e, std::string_view label) {
  for (const Error::Row& r : e.rows()) {
    if (r.label == label) return r.text;
  }
  return "";
}

TEST_F(RefusalsOfSequences, PositionsOutsideAKnownSequence) {
  struct Case {
    const char* op;
    size_t length;
    int64_t position;
    const char *found, *expected;
  };
  const Case cases[] = {
      {"SequenceAt", 2, 2, "position 2 in a sequence of 2", "-2 to 1"},
      {"SequenceAt", 2, -3, "position -3 in a sequence of 2", "-2 to 1"},
      {"SequenceAt", 0, 0, "position 0 in a sequence of 0", "a sequence with elements"},
      {"SequenceErase", 2, 2, "position 2 in a sequence of 2", "-2 to 1"},
      {"SequenceInsert", 2, 3, "position 3 in a sequence of 2", "-2 to 2"},
  };
  for (const Case& c : cases) {
    M m = known_sequence(c.length);
    m.ints("p", {c.position}, true);
    const bool inserts = std::string_view(c.op) == "SequenceInsert";
    m.node(c.op,
           inserts ? std::vector<std::string>{"xs", "x", "p"} : std::vector<std::string>{"xs", "p"},
           {"y"});
    m.output("y");
    const Error e = error_of(m);
    EXPECT_EQ(row(e, "found"), c.found) << e.render();
    EXPECT_EQ(row(e, "expected"), c.expected) << e.render();
  }
}

TEST_F(RefusalsOfSequences, ConcatenatingAnEmptySequence) {
  M m = known_sequence(0);
  m.node("ConcatFromSequence", {"xs"}, {"y"}, {M::integer("axis", 0)}).output("y");
  const Error e = error_of(m);
  EXPECT_EQ(row(e, "found"), "a sequence without elements");
  EXPECT_EQ(row(e, "expected"), "one or more");
}

TEST_F(RefusalsOfSequences, Optionals) {
  ValueType map, narrow;
  map.kind = ValueType::kMap;
  narrow.kind = ValueType::kTensor;
  narrow.element = 27;
  broken({{"Optional", 17, {}, {}, "neither an operand nor the attribute 'type'", "one of them"},
          {"OptionalGetElement",
           18,
           {""},
           {},
           "no operand 0, counted from 0",
           "an existing operand"}});
  unsupported({{"Optional",
                17,
                {},
                {type_of(map)},
                "type: only tensors, sequences and optional values are implemented"},
               {"Optional", 17, {}, {type_of(narrow)}, "float6e2m3 is not implemented"}});
}

TEST_F(RefusalsOfSequences, Branches) {
  const auto branch = [](const char* name, const Node& node) {
    return M::body(name, body(0, {node}, {"a"}));
  };
  broken({{"If",
           17,
           {"b", "f 2"},
           {branch("then_branch", M::make_node("SequenceConstruct", {"x1"}, {"a"})),
            branch("else_branch", M::make_node("Identity", {"x1"}, {"a"}))},
           "branches with results of type array[tensor[2; f32]] and tensor[2; f32]",
           "results of one type"}});
}

TEST_F(RefusalsOfSequences, Loops) {
  broken({{"Loop",
           17,
           {"i", "", "f 2"},
           {loop_of(M::make_node("SequenceConstruct", {"in2"}, {"v"}))},
           "a loop variable that becomes array[tensor[2; f32]]",
           "tensor[2; f32]"},
          {"Loop",
           17,
           {"i", "", "f 2"},
           {loop_of(M::make_node("SequenceConstruct", {"in2"}, {"v"}), true)},
           "a value of type array[tensor[2; f32]] for an output of every iteration",
           "a tensor",
           2}});
}

}  // namespace
}  // namespace tenon::onnx

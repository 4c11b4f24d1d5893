// Refusals of operators that create, move and select elements, and of control flow.
#include "graph/op/register.h"
#include "import/onnx/refusals_testing.h"

namespace tenon::onnx {
namespace {

class RefusalsOfShapes : public Refusals {
 protected:
  static void SetUpTestSuite() { graph::register_operators(); }
};

TEST_F(RefusalsOfShapes, Control) {
  const Attribute one =
      M::body("then_branch",
              body(0, {M::make_node("Constant", {}, {"a"}, {M::integer("value_int", 1)})}, {"a"}));
  broken({
      {"If", 17, {"b"}, {one}, "no attribute 'else_branch'", "a graph"},
      {"If",
       17,
       {"b"},
       {one, M::body("else_branch", body(0, {}, {}))},
       "branches with 1 and 0 outputs",
       "as many of both"},
      {"Loop",
       17,
       {"i"},
       {M::body("body", body(2, {}, {}))},
       "1 operands",
       "at least a trip count and a condition, which may have empty names"},
      {"Loop",
       17,
       {"i", "", "f"},
       {M::body("body", body(3, {}, {"in1"}))},
       "a body with 1 outputs",
       "at least 2: the condition and 1 variables"},
      {"Loop",
       17,
       {"i", "", "f"},
       {M::body("body", body(3,
                             {identity("in1", "c"),
                              M::make_node("Cast", {"in2"}, {"v"}, {M::integer("to", 7)})},
                             {"c", "v"}))},
       "a loop variable that becomes i64",
       "f32"},
      {"Scan",
       17,
       {"f 2 2"},
       {M::integer("num_scan_inputs", 2), M::body("body", body(1, {}, {}))},
       "num_scan_inputs=2",
       "1 to 1, the number of operands"},
      {"Scan",
       17,
       {"f 2", "f 2 2"},
       {M::integer("num_scan_inputs", 1), M::body("body", body(2, {}, {}))},
       "a body with 0 outputs",
       "at least 1, the number of states"},
      {"Scan",
       17,
       {"f 2", "f 2 2"},
       {M::integer("num_scan_inputs", 1), M::body("body", body(2, {}, {"in0"})),
        M::list("scan_input_directions", {0, 0})},
       "scan_input_directions has 2 entries",
       "1"},
      {"Scan",
       17,
       {"f 2", "f 2 2"},
       {M::integer("num_scan_inputs", 1), M::body("body", body(2, {}, {"in0"})),
        M::list("scan_output_axes", {0})},
       "scan_input_axes and scan_output_axes of 1 and 1 entries",
       "1 and 0"},
  });
}

TEST_F(RefusalsOfShapes, LoopsWhoseRanksChange) {
  Graph grows = body(3, {identity("in1", "c"), M::make_node("Unsqueeze", {"in2", "axis"}, {"v"})},
                     {"c", "v"});
  Graph yields =
      body(3, {identity("in1", "c"), M::make_node("Unsqueeze", {"outside", "axis"}, {"v"})},
           {"c", "v", "in2"});
  for (auto& [graph, reason] :
       {std::pair{
            grows,
            "loop variables of changing rank not implemented for operators that need the rank"},
        {yields, "outputs whose rank is known only at run time not implemented"}}) {
    M m;
    m.input("n", {}, 7).input("outside", {4}).ints("axis", {0});
    m.node("Loop", {"n", "", "outside"}, {"y"}, {M::body("body", graph)}).output("y");
    ModelReport report = inspect_model(m.model);
    EXPECT_EQ(report.problem, "");
    ASSERT_EQ(report.unsupported.size(), 1u) << reason;
    EXPECT_EQ(report.unsupported[0].reason, reason);
  }
}

TEST_F(RefusalsOfShapes, Creation) {
  broken({
      {"Constant",
       17,
       {},
       {},
       "no attribute that holds a value",
       "one of value, sparse_value, value_int, value_ints, value_float, value_floats, value_string "
       "and "
       "value_strings"},
      {"ConstantOfShape",
       17,
       {"= 2"},
       {M::constant("value", M::tensor("v", {1, 2}))},
       "a value of 2 elements",
       "one"},
      {"Range", 17, {"= 0", "= 4", "= 0"}, {}, "a delta of 0", "another number"},
      {"Range",
       17,
       {"~ 0", "~ 1e30", "~ 1"},
       {},
       "a range of 1.0000000150474662e+30 elements",
       "at most 9e15"},
      {"EyeLike", 17, {"f 2"}, {}, "an operand of rank 1", "a matrix"},
      {"HannWindow", 17, {"= 2 3"}, {}, "a size of 2 elements", "one"},
      {"EyeLike",
       17,
       {"f 2 2"},
       {M::integer("dtype", -1)},
       "dtype=-1",
       "the number of an element type"},
  });
  unsupported({
      {"EyeLike", 17, {"f 2 2"}, {M::integer("dtype", 27)}, "dtype=float6e2m3 is not implemented"},
      {"ConstantOfShape",
       17,
       {"= 2"},
       {M::constant("value",
                    [] {
                      TensorData t;
                      t.problem = "int4 is not implemented";
                      return t;
                    }())},
       "int4 is not implemented"},
  });
}

TEST_F(RefusalsOfShapes, Indexing) {
  broken({
      {"ScatterElements",
       18,
       {"f 2", "i 2", "f 2"},
       {M::text("reduction", "mean")},
       "reduction=mean",
       "none, add, mul, max or min"},
      {"TopK", 17, {"f 4", "= 1 2"}, {}, "k of 2 elements", "one"},
      {"CumSum", 17, {"f 4", "= 0 0"}, {}, "an axis of 2 elements", "one"},
      {"TensorScatter",
       24,
       {"f 1 4 2", "f 1 2 2"},
       {M::text("mode", "wrap")},
       "mode=wrap",
       "linear or circular"},
      {"TensorScatter",
       24,
       {"f 1 4 2", "f 1 2 2"},
       {M::integer("axis", 0)},
       "axis 0, the batch",
       "another axis"},
  });
}

TEST_F(RefusalsOfShapes, Resizing) {
  broken({
      {"Resize", 19, {kX, "", "~ 1 1 -2 2"}, {}, "a scale of -2", "a positive number, at most 1e6"},
      {"Resize",
       10,
       {kX, "~ 1 1 2 2"},
       {M::text("mode", "cubic")},
       "mode=cubic",
       "nearest or linear"},
      {"Resize", 10, {kX, "~ 2 2"}, {}, "2 scales", "4, one for each axis"},
      {"Resize",
       19,
       {kX, "", "", "= 1 4 4 4"},
       {M::text("keep_aspect_ratio_policy", "fit")},
       "keep_aspect_ratio_policy=fit",
       "stretch, not_larger or not_smaller"},
      {"Resize",
       19,
       {"f 1 4 0 8", "", "", "= 1 4 4 4"},
       {M::text("keep_aspect_ratio_policy", "not_larger")},
       "an operand without elements",
       "a scale from its sizes"},
      {"Resize", 19, {kX, "", "", "= 4 4"}, {}, "2 sizes", "4, one for each axis"},
      {"Resize", 19, {kX, "", "~ 2 2"}, {}, "2 scales", "4, one for each axis"},
      {"Resize", 19, {kX}, {}, "neither scales nor sizes", "one of them"},
  });
}

TEST_F(RefusalsOfShapes, Sampling) {
  const std::string grid = "f 1 2 2 2";
  broken({
      {"GridSample",
       20,
       {kX, grid},
       {M::text("mode", "best")},
       "mode=best",
       "linear, nearest or cubic"},
      {"GridSample",
       20,
       {kX, grid},
       {M::text("padding_mode", "ones")},
       "padding_mode=ones",
       "zeros, border or reflection"},
      {"GridSample", 20, {kX, "f 1 2 2"}, {}, "operands of rank 4 and 3", "one rank, 3 or more"},
  });
  broken({
      {"AffineGrid",
       20,
       {"f 1 2 3", "= 1 1 2"},
       {},
       "3 sizes",
       "4 or 5: batch, channels and 2 or 3 spatial sizes"},
      {"AffineGrid", 20, {"f 2 3", "= 1 1 2 2"}, {}, "theta of rank 2", "3"},
      {"RoiAlign", 16, {kX, "f 4", "i 1"}, {}, "operand 1, counted from 0, of rank 1", "2"},
      {"RoiAlign", 16, {kX, "f 1 4", "i 1"}, {M::text("mode", "min")}, "mode=min", "avg or max"},
      {"RoiAlign",
       16,
       {kX, "f 1 4", "i 1"},
       {M::text("coordinate_transformation_mode", "pixel")},
       "coordinate_transformation_mode=pixel",
       "half_pixel or output_half_pixel"},
      {"RoiAlign",
       16,
       {kX, "f 1 4", "i 1"},
       {M::integer("sampling_ratio", -1)},
       "sampling_ratio=-1",
       "0 to 1048576"},
      {"RoiAlign",
       16,
       {kX, "f 1 4", "i 1"},
       {M::integer("output_width", 0)},
       "a result of 1 x 0",
       "1 x 1 or more"},
  });
  unsupported(
      {{"GridSample", 20, {"f 1 1 2 2 2 2", "f 1 2 2 2 2 4"}, {}, "rank 6 not implemented"}});
}

TEST_F(RefusalsOfShapes, Shapes) {
  broken({
      {"Reshape",
       17,
       {"f 2 3", "= 2 3 0"},
       {},
       "a 0 at 2 of the shape, to keep that size",
       "positions below 2, the operand's rank"},
      {"Reshape", 17, {"f 2 3", "= -1 -1"}, {}, "two -1 in the shape", "one at most"},
      {"Reshape", 17, {"f 2 3", "= -2 3"}, {}, "a size of -2", "a size, or -1 for the rest"},
      {"Reshape",
       17,
       {"f 0 3", "= 0 -1"},
       {M::integer("allowzero", 1)},
       "both -1 and 0 in the shape, with allowzero",
       "sizes that determine the rest"},
      {"Flatten", 17, {"f 2 3"}, {M::integer("axis", 3)}, "axis 3", "0 to 2"},
      {"Unsqueeze", 11, {"f 2 3"}, {}, "no axes", "the axes to insert"},
      {"Unsqueeze", 17, {"f 2 3", "i 2 1"}, {}, "axes of rank 2", "a list"},
      {"Unsqueeze", 17, {"f 2 3", "i 31"}, {}, "a result of rank 33", "at most 32"},
      {"Squeeze", 17, {"f 1", "i 2"}, {}, "2 axes of a tensor of rank 1", "at most 1"},
      {"Transpose",
       17,
       {"f 2 3"},
       {M::list("perm", {0})},
       "perm has 1 entries",
       "2, one for each axis"},
      {"Concat", 17, {}, {M::integer("axis", 0)}, "no operands", "one or more"},
      {"Split", 18, {"f 4"}, {M::integer("num_outputs", 0)}, "num_outputs=0", "1 to 100000"},
      {"Split", 17, {"f 4", "= 4"}, {}, "1 sizes", "2, one for each output", 2},
      {"Tile", 5, {"f 4", "= 2", "= 0 0"}, {}, "an axis of 2 elements", "one"},
      {"DepthToSpace", 17, {kX}, {M::integer("blocksize", 0)}, "blocksize=0", "1 or more"},
      {"DepthToSpace", 17, {"f 4 4"}, {M::integer("blocksize", 2)}, "an operand of rank 2", "4"},
      {"DepthToSpace",
       17,
       {kX},
       {M::integer("blocksize", 2), M::text("mode", "X")},
       "mode=X",
       "DCR or CRD"},
      {"SpaceToDepth",
       26,
       {kX},
       {M::integer("blocksize", 2), M::text("mode", "X")},
       "mode=X",
       "DCR or CRD"},
  });
  Refusal high{"Unsqueeze", 17, {"f 1 1 1", "="}, {}, "a result of rank 33", "at most 32"};
  for (int i = 0; i < 30; ++i) high.operands[1] += cat(" ", i);
  broken({high});
  unsupported({
      {"Unsqueeze",
       17,
       {"f 2", "i k"},
       {},
       "a number of axes known only at run time not implemented"},
      {"Tile", 5, {"f 4", "= 2", "i"}, {}, "axis computed at run time not implemented"},
      {"Split", 17, {"f n", "i 65"}, {}, "more than 64 sizes known only at run time", "", 65},
  });
}

TEST_F(RefusalsOfShapes, Slicing) {
  broken({
      {"Slice",
       1,
       {"f 4 4"},
       {M::list("starts", {0, 0}), M::list("ends", {1})},
       "starts, ends and axes of 2, 1 and 2 entries",
       "as many of each"},
      {"Slice",
       17,
       {"f 4 4", "= 0 0", "= 1"},
       {},
       "starts, ends, axes and steps of unequal length",
       "2 entries of each, as starts has"},
      {"Slice",
       17,
       {"f 4 4", "i 1000000000000", "i 1000000000000"},
       {},
       "1000000000000 axes of a tensor of rank 2",
       "at most 2"},
      {"Slice", 17, {"f 4", "= 0", "= 1", "= 0", "= 0"}, {}, "a step of 0", "another number"},
      {"Pad", 17, {"f 4", "= 1"}, {}, "1 pads", "2, two for each axis"},
      {"Pad",
       17,
       {"f 4", "= 1 1"},
       {M::text("mode", "mirror")},
       "mode=mirror",
       "constant, reflect, edge or wrap"},
      {"CenterCropPad", 18, {"f 4 4", "= 2"}, {}, "1 sizes", "2, one for each axis"},
  });
}

}  // namespace
}  // namespace tenon::onnx

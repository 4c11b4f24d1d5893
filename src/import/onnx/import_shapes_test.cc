#include <cmath>

#include "import/onnx/import_testing.h"

namespace tenon::onnx {
namespace {

using ImportShapes = ImportModel;

// ---- shapes as values ----

TEST_F(ImportShapes, ReshapeResolvesZeroAndMinusOneSymbolically) {
  M m;
  m.input("x", {"n", 6, "s"}).ints("shape", {0, -1, 3});
  m.node("Reshape", {"x", "shape"}, {"y"}).output("y");
  EXPECT_EQ(text(m),
            R"(fn @main(%x: tensor[n, 6, s; f32]) -> tensor[n, 2*s, 3; f32] attrs(results=["y"]) {
  %0: tensor[n, 2*s, 3; f32] = reshape(%x, shape=[n, 2*s, 3])
  %0
}
)");
}

TEST_F(ImportShapes, ShapeArithmeticStaysProvable) {
  // Split heads: x [b, s, 12] to [b, s, 3, 4], with b and s taken from the shape of x.
  M m;
  m.input("x", {"b", "s", 12}).ints("zero", {0}).ints("one", {1}).ints("heads", {3, 4});
  m.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "zero"}, {"b"});
  m.node("Gather", {"shape", "one"}, {"s"})
      .node("Concat", {"b", "s", "heads"}, {"to"}, {M::integer("axis", 0)});
  m.node("Reshape", {"x", "to"}, {"y"}).output("y");
  ImportResult r = import_model(m.model);
  auto type = graph::type_of(r.module->functions.at("main")->body->result);
  EXPECT_EQ(to_text(type), "tensor[b, s, 3, 4; f32]");
}

TEST_F(ImportShapes, SliceClampsSymbolically) {
  M m;
  m.input("x", {"n", 5}).ints("starts", {-3, 1}).ints("ends", {INT64_MAX, 100});
  m.node("Slice", {"x", "starts", "ends"}, {"y"}).output("y");
  EXPECT_EQ(
      text(m),
      R"(fn @main(%x: tensor[n, 5; f32]) -> tensor[n - max(0, n - 3), 4; f32] attrs(results=["y"]) {
  %0: tensor[n - max(0, n - 3), 4; f32] = slice(%x, starts=[max(0, n - 3), 1], sizes=[n - max(0, n - 3), 4], steps=[1, 1])
  %0
}
)");
}

TEST_F(ImportShapes, ShapesFromInputsAreMatched) {
  M m;
  m.input("x", {"n", 4}).input("shape", {2}, 7);
  m.node("Reshape", {"x", "shape"}, {"y"}).node("Relu", {"y"}, {"z"}).output("z");
  EXPECT_EQ(
      text(m),
      R"(fn @main(%x: tensor[n, 4; f32], %shape: tensor[2; i64]) -> tensor[rank=2; f32] attrs(results=["z"]) {
  %0: tensor[2; i64] = [n, 4] = shape_of(%x)
  %1: tensor[2; i64] = reshape_dims(%shape, %0)
  %2: tensor[2; i64] = [d_0, d_1] = match_elements(%1, [d_0, d_1])
  check 4*n == d_0*d_1, "reshape: number of elements of 'x' and of 'shape'"
  %3: tensor[d_0, d_1; f32] = reshape(%x, shape=[d_0, d_1])
  %4: tensor[d_0, d_1; f32] = relu(%3)
  %4
}
)");
}

TEST_F(ImportShapes, KernelsMayBeOfAnySize) {
  M m;
  m.input("x", {1, 3, "h", 8}).input("w", {4, 3, "k", 3});
  m.node("Conv", {"x", "w"}, {"y"}).output("y");
  auto type = graph::type_of(import_model(m.model).module->functions.at("main")->body->result);
  EXPECT_EQ(to_text(type), "tensor[1, 4, h - k + 1, 6; f32]");
  m.model.graph.nodes[0].attributes.push_back(M::list("kernel_shape", {5, 3}));
  EXPECT_THAT(text(m),
              testing::HasSubstr(
                  "check k == 5, \"size of the weight on spatial axis 0 and kernel_shape\""));
}

// ---- numbers in sizes ----

template <class T>
TensorData constant_of(const std::string& name, DataType dtype, const std::vector<T>& values,
                       std::vector<int64_t> shape) {
  TensorData t;
  t.name = name;
  t.dims = std::move(shape);
  t.tensor = Tensor::copy_of(std::span<const int64_t>(t.dims), dtype, std::span<const T>(values));
  return t;
}

M one_hot(const TensorData& depth) {
  M m;
  m.input("x", {4}, 7).ints("values", {0, 1});
  m.model.graph.initializers.push_back(depth);
  m.node("OneHot", {"x", depth.name, "values"}, {"y"}).output("y");
  return m;
}

M resize(int64_t size, const TensorData& scales) {
  M m;
  m.input("x", {"n"}).node("Resize", {"x", "", scales.name}, {"y"}).output("y");
  m.model.graph.inputs[0].type.shape[0] = {size, ""};
  m.model.graph.initializers.push_back(scales);
  return m;
}

TEST_F(ImportShapes, SizesThatNoIntegerHoldsAreRefused) {
  for (float depth : {1e30F, -1e30F, NAN}) {
    Error e = error_of(one_hot(constant_of<float>("depth", f32, {depth}, {})));
    EXPECT_EQ(e.kind(), ErrorKind::Usage);
    EXPECT_NE(e.render().find(cat("  found     a depth of ", static_cast<double>(depth),
                                  "\n  expected  a number that fits 64 bits\n")),
              std::string::npos)
        << e.render();
  }
  Error e = error_of(resize(int64_t{1} << 60, constant_of<float>("scales", f32, {1e6F}, {1})));
  EXPECT_EQ(e.render(), R"(error: /Resize: the Resize node breaks ONNX's rules
  where     node '/Resize' (Resize) of m.onnx
  operands  x: tensor[1152921504606846976; f32], scales: tensor[1; f32]
  found     a size of 1.152921504606847e+24
  expected  a number that fits 64 bits
  help: export the model again, or correct the node)");
}

TEST_F(ImportShapes, IntegersOfAllTypesAreExact) {
  int64_t odd = (int64_t{1} << 53) + 1;
  M m = one_hot(constant_of<uint64_t>("depth", u64, {static_cast<uint64_t>(odd)}, {}));
  EXPECT_NE(text(m).find(cat("depth=", odd)), std::string::npos) << text(m);
  M beyond;
  beyond.input("x", {4}).node("Unsqueeze", {"x", "axes"}, {"y"}).output("y");
  beyond.model.graph.initializers.push_back(
      constant_of<uint64_t>("axes", u64, {0, UINT64_MAX}, {2}));
  EXPECT_EQ(error_of(beyond).render(), R"(error: /Unsqueeze: the Unsqueeze node breaks ONNX's rules
  where     node '/Unsqueeze' (Unsqueeze) of m.onnx
  operands  x: tensor[4; f32], axes: tensor[2; u64]
  found     axes in a constant tensor[2; u64]
  expected  a list of integers, each below 2^63
  help: export the model again, or correct the node)");
}

TEST_F(ImportShapes, NumbersOfAnotherTypeAreConvertedAsByCast) {
  M m(6);
  m.input("x", {4}, 6)
      .node("Pad", {"x"}, {"y"}, {M::list("pads", {1, 0}), M::number("value", 1e30)});
  m.output("y");
  EXPECT_NE(text(m).find("pad(%x, tensor[i32]{2147483647}"), std::string::npos) << text(m);
}

}  // namespace
}  // namespace tenon::onnx

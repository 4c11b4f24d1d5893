#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

using Index = std::vector<int64_t>;

TEST(Movement, ReshapeKeepsTheOrder) {
  try_samples("reshape", 200, [](const Trial& t) {
    Nd want(t.sizes("shape"));
    want.data = Nd(t.operands[0]).data;
    expect_equal(t.results[0], want);
  });
}

TEST(Movement, ReshapeIndexesWithoutDivisionsWhereAxesStay) {
  register_operators();
  Dim b = Dim::symbol("b"), s = Dim::symbol("s");
  auto call = make_call("reshape", {tensor_type(f32, {b, s, 12})},
                        attrs({{"shape", attr_dims({b, s, 3, 4})}}));
  auto x = loop::buffer("x", f32, {b, s, 12}), y = loop::buffer("y", f32, {b, s, 3, 4});
  std::string text =
      to_text(*OperatorTable::global().find("reshape")->lower(LowerContext(*call, {x}, {y})));
  EXPECT_EQ(text.find("floordiv"), std::string::npos) << text;
  EXPECT_EQ(text.find("//"), std::string::npos) << text;
  EXPECT_EQ(text.find("mod"), std::string::npos) << text;
}

TEST(Movement, TransposePermutes) {
  try_samples("transpose", 100, [](const Trial& t) {
    Nd x(t.operands[0]);
    Index perm = t.ints("perm"), shape;
    for (int64_t p : perm) shape.push_back(x.shape[static_cast<size_t>(p)]);
    Nd want(shape);
    for_each_index(shape, [&](const Index& i) {
      Index at(i.size());
      for (size_t k = 0; k < i.size(); ++k) at[static_cast<size_t>(perm[k])] = i[k];
      want.at(i) = x.at(at);
    });
    expect_equal(t.results[0], want);
  });
}

TEST(Movement, ExpandBroadcastsBothWays) {
  try_samples("expand", 100, [](const Trial& t) {
    Nd x(t.operands[0]), want(t.results[0]);
    Index shape = t.sizes("shape");
    for (size_t i = 0; i < shape.size(); ++i) {
      ASSERT_EQ(want.shape[want.shape.size() - shape.size() + i], shape[i]);
    }
    for_each_index(want.shape, [&](const Index& i) { want.at(i) = x.broadcast(i); });
    expect_equal(t.results[0], want);
  });
  Tensor x = Tensor::empty({3, 1}, f32);
  for (int i = 0; i < 3; ++i) x.data_as<float>()[i] = static_cast<float>(i);
  Tensor y = run("expand", {x}, attrs({{"shape", attr_dims({Dim(1), Dim(2)})}}));
  EXPECT_EQ(shape_of_tensor(y), (Index{3, 2}));
}

TEST(Movement, ConcatJoins) {
  try_samples("concat", 150, [](const Trial& t) {
    Nd want(t.results[0]);
    size_t axis = static_cast<size_t>(t.axis("axis", static_cast<int64_t>(want.shape.size())));
    int64_t start = 0;
    for (const Tensor& operand : t.operands) {
      Nd x(operand);
      for_each_index(x.shape, [&](const Index& i) {
        Index at = i;
        at[axis] += start;
        want.at(at) = x.at(i);
      });
      start += x.shape[axis];
    }
    ASSERT_EQ(want.shape[axis], start);
    expect_equal(t.results[0], want);
  });
}

TEST(Movement, SplitCuts) {
  try_samples("split", 150, [](const Trial& t) {
    Nd x(t.operands[0]);
    size_t axis = static_cast<size_t>(t.axis("axis", static_cast<int64_t>(x.shape.size())));
    int64_t start = 0;
    Index sizes = t.sizes("sizes");
    ASSERT_EQ(t.results.size(), sizes.size());
    for (size_t part = 0; part < sizes.size(); ++part) {
      Index shape = x.shape;
      shape[axis] = sizes[part];
      Nd want(shape);
      for_each_index(shape, [&](const Index& i) {
        Index at = i;
        at[axis] += start;
        want.at(i) = x.at(at);
      });
      start += sizes[part];
      expect_equal(t.results[part], want);
    }
  });
}

TEST(Movement, SliceStepsEitherWay) {
  try_samples("slice", 200, [](const Trial& t) {
    Nd x(t.operands[0]), want(t.sizes("sizes"));
    Index starts = t.sizes("starts"), steps = t.ints("steps");
    for_each_index(want.shape, [&](const Index& i) {
      Index at = i;
      for (size_t k = 0; k < i.size(); ++k) at[k] = starts[k] + i[k] * steps[k];
      want.at(i) = x.at(at);
    });
    expect_equal(t.results[0], want);
  });
}

// A kernel that is called with a start that inference could not know stops and reads nothing.
TEST(Movement, SliceChecksAStartThatIsNotProved) {
  register_operators();
  Dim n = Dim::symbol("n"), start = Dim::symbol("start");
  auto call = make_call("slice", {tensor_type(f32, {n})},
                        attrs({{"starts", attr_dims({start})},
                               {"sizes", attr_dims({Dim(2)})},
                               {"steps", attr_ints({1})}}));
  auto x = loop::buffer("x", f32, {n}), y = loop::buffer("y", f32, {2});
  auto compute = OperatorTable::global().find("slice")->lower(LowerContext(*call, {x}, {y}));
  Tensor data = Tensor::empty({5}, f32);
  for (int i = 0; i < 5; ++i) data.data_as<float>()[i] = static_cast<float>(i);
  EXPECT_EQ(Nd(loop::evaluate(*compute, {data}, {{"start", 3}})[0]).data,
            (std::vector<double>{3, 4}));
  EXPECT_THROW(loop::evaluate(*compute, {data}, {{"start", 4}}), Error);
}

TEST(Movement, TileRepeats) {
  try_samples("tile", 100, [](const Trial& t) {
    Nd x(t.operands[0]);
    Index shape = x.shape, repeats = t.sizes("repeats");
    for (size_t i = 0; i < shape.size(); ++i) shape[i] *= repeats[i];
    Nd want(shape);
    for_each_index(shape, [&](const Index& i) {
      Index at = i;
      for (size_t k = 0; k < i.size(); ++k) at[k] %= x.shape[k];
      want.at(i) = x.at(at);
    });
    expect_equal(t.results[0], want);
  });
}

TEST(Movement, TypeErrorsNameTheAttribute) {
  auto x = tensor_type(f32, {2, 3});
  EXPECT_EQ(type_error("reshape", {x}, attrs({{"shape", attr_dims({Dim(5)})}})),
            "operator 'reshape': number of elements of 'x' and of 'shape': 6 and 5 differ");
  EXPECT_EQ(type_error("transpose", {x}, attrs({{"perm", attr_ints({0})}})),
            "operator 'transpose': 'perm' has 1 entries, but 'x' has rank 2");
  EXPECT_EQ(type_error("concat", {x, tensor_type(f32, {2, 4})}, attrs({{"axis", 0}})),
            "operator 'concat': axis 1 of operand 'x' 0 and of operand 'x' 1: 3 and 4 differ");
  EXPECT_EQ(type_error("split", {x}, attrs({{"axis", 1}, {"sizes", attr_dims({Dim(1), Dim(1)})}})),
            "operator 'split': sum of 'sizes' and the axis of 'x': 2 and 3 differ");
  EXPECT_EQ(type_error("slice", {x},
                       attrs({{"starts", attr_dims({Dim(0), Dim(2)})},
                              {"sizes", attr_dims({Dim(2), Dim(2)})}})),
            "operator 'slice': axis 1: the end lies within 'x': 4 is greater than 3");
}

TEST(UnpackBits, HasTheNumbersInBytesLowestFirst) {
  try_samples("unpack_bits", 60, [](const Trial& t) {
    const Nd x(t.operands[0]);
    const int64_t bits = t.integer("bits"), each = 8 / bits;
    std::vector<int64_t> shape = x.shape;
    shape[0] *= each;
    Nd want(shape);
    for_each_index(shape, [&](const std::vector<int64_t>& i) {
      std::vector<int64_t> at = i;
      at[0] /= each;
      want.at(i) = (static_cast<int64_t>(x.at(at)) >> (bits * (i[0] % each))) & ((1 << bits) - 1);
    });
    expect_equal(t.results[0], want);
  });
  EXPECT_EQ(type_error("unpack_bits", {tensor_type(u8, {2})}, attrs({{"bits", int64_t{3}}})),
            "operator 'unpack_bits': 'bits' is 3, expected 2 or 4");
  EXPECT_EQ(type_error("unpack_bits", {tensor_type(u8, {})}, attrs({{"bits", int64_t{4}}})),
            "operator 'unpack_bits': operand 'x' has rank 0, expected at least 1");
}

}  // namespace
}  // namespace tenon::graph

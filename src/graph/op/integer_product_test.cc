// Products of integers of 8 bits, from tensors and from words.
#include "graph/ir/operator_name.h"
#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

using Index = std::vector<int64_t>;

// The operand less its zero point, which may be absent and otherwise broadcasts to it, as i32.
Tensor centred(const Tensor& x, const Tensor& zero) {
  const Nd from(x);
  Nd zeros(Index{});
  if (zero) zeros = Nd(zero);
  Tensor out = Tensor::empty(from.shape, i32);
  for_each_index(from.shape, [&](const Index& i) {
    out.data_as<int32_t>()[from.offset(i)] =
        static_cast<int32_t>(from.at(i) - (zero ? zeros.broadcast(i) : 0));
  });
  return out;
}

TEST(MatmulInteger, IsTheProductOfCentredOperands) {
  try_samples("matmul_integer", 200, [](const Trial& t) {
    const Tensor a = centred(t.operands[0], t.operands[2]),
                 b = centred(t.operands[1], t.operands[3]);
    expect_equal(t.results[0], Nd(run("matmul", {a, b})));
  });
}

TEST(MatmulInteger, TypeErrorsNameTheOperands) {
  const auto error = [](const TypeRef& zero) {
    return type_error("matmul_integer",
                      {tensor_type(u8, {2, 3}), tensor_type(i8, {3, 4}), zero, unit_type()});
  };
  EXPECT_EQ(error(tensor_type(i8, {})),
            "operator 'matmul_integer': operand 'a_zero' is i8, but operand 'a' is u8; they must "
            "have one dtype");
  EXPECT_EQ(error(tensor_type(u8, {2})),
            "operator 'matmul_integer': sizes of axis -1 to broadcast: 3 and 2 differ and neither "
            "is 1");
  EXPECT_EQ(error(tensor_type(u8, {1, 1, 1})),
            "operator 'matmul_integer': operand 'a_zero' has rank 3, expected at most 2, that of "
            "operand 'a'");
}

TEST(ConvInteger, IsTheConvolutionOfCentredOperands) {
  try_samples("conv_integer", 150, [](const Trial& t) {
    const Tensor x = centred(t.operands[0], t.operands[2]);
    const bool last = t.text("layout") == "NHWC";
    Tensor w = t.operands[1], zero = t.operands[3];
    if (zero && zero.count() > 1 && !last) {  // channels are the first axis of w
      Index shape(w.shape().size(), 1);
      shape[0] = zero.count();
      zero = Tensor::copy_of<uint8_t>(
          shape, zero.dtype(),
          {static_cast<const uint8_t*>(zero.data()), static_cast<size_t>(zero.count())});
    }
    Attrs attributes;
    for (const char* name : {"strides", "pads", "dilations", "groups", "layout"}) {
      attributes.set(name, t.attrs.at(name));
    }
    expect_equal(t.results[0], Nd(run("conv", {x, centred(w, zero), Tensor()}, attributes)));
  });
}

// What `pack_words` packed: byte j of word q along the last axis but one.
int8_t byte_of(const Nd& words, Index at, int64_t place) {
  at[at.size() - 2] = place / 4;
  const auto word = static_cast<uint32_t>(static_cast<int64_t>(words.at(at)));
  return static_cast<int8_t>(word >> (8 * (place % 4)));
}

TEST(PackWords, HasFourNeighboursInAWordAndColumnsInPanels) {
  try_samples("pack_words", 100, [](const Trial& t) {
    const Nd w(t.operands[0]), words(t.results[0]);
    const int64_t width = t.integer("width"), batch = t.integer("batch");
    Index bytes = words.shape;
    bytes[bytes.size() - 2] *= 4;
    for_each_index(bytes, [&](const Index& i) {
      Index from = i;
      from.erase(from.begin() + batch);
      from.back() += i[static_cast<size_t>(batch)] * width;
      bool inside = true;
      for (size_t k = 0; k < from.size(); ++k) inside = inside && from[k] < w.shape[k];
      ASSERT_EQ(byte_of(words, i, i[i.size() - 2]), inside ? w.at(from) : 0);
    });
  });
}

TEST(MatmulWords, IsTheProductWithTheUnpackedMatrix) {
  try_samples("matmul_words", 150, [](const Trial& t) {
    const Nd a(t.operands[0]), words(t.operands[1]);
    Nd want(shape_of_tensor(t.results[0]));
    const int64_t width = words.shape.back();
    for_each_index(want.shape, [&](const Index& i) {
      for (int64_t k = 0; k < a.shape.back(); ++k) {
        Index at = i, word(i.begin(), i.end() - std::min<std::ptrdiff_t>(2, i.size()));
        at.back() = k;
        word.insert(word.end(), {i.back() / width, k / 4, i.back() % width});
        const auto bits = static_cast<uint32_t>(static_cast<int64_t>(words.broadcast(word)));
        want.at(i) += a.broadcast(at) * static_cast<int8_t>(bits >> (8 * (k % 4)));
      }
    });
    expect_equal(t.results[0], want);
  });
}

TEST(MatmulWords, OfAPackedMatrixIsTheProductOfIntegers) {
  Random random(3);
  for (int64_t depth = 1; depth < 10; ++depth) {
    const Tensor a = random_tensor(u8, {3, depth}, random, 0, 255),
                 b = random_tensor(i8, {depth, 7}, random, -128, 127);
    const Tensor words = run("pack_words", {b}, attrs({{"width", int64_t{4}}}));
    const Tensor y = run("matmul_words", {a, words}, attrs({{"columns", int64_t{7}}}));
    expect_equal(y, Nd(run("matmul_integer", {a, b, Tensor(), Tensor()})));
  }
}

TEST(MatmulWords, TypeErrorsNameTheAxes) {
  const TypeRef a = tensor_type(u8, {2, 5});
  EXPECT_EQ(type_error("matmul_words", {a, tensor_type(i32, {1, 1, 4})}, attrs({{"columns", 4}})),
            "operator 'matmul_words': words of the last axis of 'a' and the last axis but one "
            "of 'words': 2 and 1 differ");
  EXPECT_EQ(type_error("matmul_words", {a, tensor_type(i32, {1, 2, 4})}, attrs({{"columns", 5}})),
            "operator 'matmul_words': 'columns' and those of all panels: 5 is greater than 4");
}

// Expects the convolution with weights `w` of a trial's x, where what is around x is operand 2: a
// zero point in the definition, whose product with the sum of the weights is subtracted there.
void expect_convolution(const Trial& t, const Tensor& w, Attrs attributes) {
  attributes.set("layout", Any(String(kChannelsLast)));
  for (const char* name : {"strides", "pads", "dilations"}) {
    attributes.set(name, t.attrs.at(name));
  }
  Tensor want = run("conv_integer", {t.operands[0], w, t.operands[2], Tensor()}, attributes);
  if (!t.operands[2]) return expect_equal(t.results[0], Nd(want));
  Nd expected(want);
  const Nd weights(w);
  const double zero = Nd(t.operands[2]).data[0];
  for_each_index(expected.shape, [&](const Index& i) {
    for_each_index(weights.shape, [&](const Index& k) {
      if (k.back() == i.back()) expected.at(i) += zero * weights.at(k);
    });
  });
  expect_equal(t.results[0], expected);
}

TEST(ConvWords, OfPackedWeightsIsTheConvolutionOfIntegers) {
  try_samples("conv_words", 150, [](const Trial& t) {
    const Nd words(t.operands[1]);
    const int64_t channels = t.operands[0].shape().back(), columns = t.size("columns");
    Index shape(words.shape.begin() + 1, words.shape.end());
    shape[shape.size() - 2] = channels;
    shape.back() = columns;
    Tensor w = Tensor::empty(shape, i8);
    const Nd places(shape);
    for_each_index(shape, [&](const Index& i) {
      Index at = {i.back() / words.shape.back()};
      at.insert(at.end(), i.begin(), i.end());
      at.back() = i.back() % words.shape.back();
      w.data_as<int8_t>()[places.offset(i)] = byte_of(words, at, i[i.size() - 2]);
    });
    expect_convolution(t, w, {});
  });
}

// Each channel has its own filter, whose places along the last spatial axis are bytes of words.
TEST(DepthwiseWords, OfPackedWeightsIsTheConvolutionOfIntegers) {
  try_samples("depthwise_words", 150, [](const Trial& t) {
    const Nd words(t.operands[1]);
    Index shape = words.shape;
    shape[shape.size() - 2] *= 4;
    shape.insert(shape.end() - 1, 1);
    Tensor w = Tensor::empty(shape, i8);
    const Nd places(shape);
    for_each_index(shape, [&](const Index& i) {
      Index at = i;
      at.erase(at.end() - 2);
      w.data_as<int8_t>()[places.offset(i)] = byte_of(words, at, at[at.size() - 2]);
    });
    expect_convolution(t, w, attrs({{"groups", shape.back()}}));
  });
}

TEST(DepthwiseWords, TypeErrorsNameTheOperands) {
  const auto error = [](std::vector<Dim> words) {
    return type_error("depthwise_words",
                      {tensor_type(u8, {1, 8, 8, 6}), tensor_type(i32, words), unit_type()});
  };
  EXPECT_EQ(error({3, 1, 5}),
            "operator 'depthwise_words': channels of 'x' and of 'words': 6 and 5 differ");
  EXPECT_EQ(error({3, 1, 1, 6}),
            "operator 'depthwise_words': operand 'words' has rank 4, expected 3");
  EXPECT_EQ(
      error({3, 3, 6}),
      "operator 'depthwise_words': the kernel fits spatial axis 1 of 'x': 12 is greater than 8");
}

}  // namespace
}  // namespace tenon::graph

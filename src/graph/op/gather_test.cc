// Gathering and scattering.
#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

using Index = std::vector<int64_t>;

int64_t from_end(double at, int64_t n) {
  return static_cast<int64_t>(at < 0 ? at + double(n) : at);
}

// Operand 1 holds indices of an axis of operand 0.
Tensor axis_indices(size_t i, const Sample& s, Random& random) {
  if (i != 1) return Tensor();
  Index shape = sample_shape(s, 0);
  int64_t axis = s.attrs.find("axis")->as<int64_t>(), n = static_cast<int64_t>(shape.size());
  int64_t size = shape[static_cast<size_t>(axis < 0 ? axis + n : axis)];
  return random_tensor(type_as<TensorType>(s.operands[1])->dtype, sample_shape(s, 1), random, -size,
                       size - 1);
}

// Operand 1 holds tuples that index operand 0 after `batch` axes.
Tensor tuple_indices(size_t i, const Sample& s, Random& random) {
  if (i != 1) return Tensor();
  Index x = sample_shape(s, 0), shape = sample_shape(s, 1);
  const Any* batch = s.attrs.find("batch_dims");
  Tensor t = random_tensor(type_as<TensorType>(s.operands[1])->dtype, shape, random, 0, 0);
  size_t length = static_cast<size_t>(shape.back());
  for (int64_t k = 0; k < t.count(); ++k) {
    size_t axis =
        static_cast<size_t>(batch ? batch->as<int64_t>() : 0) + static_cast<size_t>(k) % length;
    loop::scalar_store(t.dtype(), static_cast<char*>(t.data()) + k * t.dtype().bytes(),
                       random.between(-x[axis], x[axis] - 1));
  }
  return t;
}

TEST(Gather, TakesSlices) {
  try_samples(
      "gather", 200,
      [](const Trial& t) {
        Nd x(t.operands[0]), indices(t.operands[1]);
        int64_t axis = t.axis("axis", static_cast<int64_t>(x.shape.size()));
        Index shape(x.shape.begin(), x.shape.begin() + axis);
        shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
        shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
        Nd want(shape);
        std::ptrdiff_t q = static_cast<std::ptrdiff_t>(indices.shape.size());
        for_each_index(shape, [&](const Index& i) {
          Index at(i.begin(), i.begin() + axis), which(i.begin() + axis, i.begin() + axis + q);
          at.push_back(from_end(indices.at(which), x.shape[static_cast<size_t>(axis)]));
          at.insert(at.end(), i.begin() + axis + q, i.end());
          want.at(i) = x.at(at);
        });
        expect_equal(t.results[0], want);
      },
      axis_indices);
}

TEST(Gather, ElementsKeepTheirPlaceOnOtherAxes) {
  try_samples(
      "gather_elements", 200,
      [](const Trial& t) {
        Nd x(t.operands[0]), indices(t.operands[1]), want(indices.shape);
        size_t axis = static_cast<size_t>(t.axis("axis", static_cast<int64_t>(x.shape.size())));
        for_each_index(want.shape, [&](const Index& i) {
          Index at = i;
          at[axis] = from_end(indices.at(i), x.shape[axis]);
          want.at(i) = x.at(at);
        });
        expect_equal(t.results[0], want);
      },
      axis_indices);
}

TEST(Gather, NdTakesTuples) {
  try_samples(
      "gather_nd", 200,
      [](const Trial& t) {
        Nd x(t.operands[0]), indices(t.operands[1]), want(t.results[0]);
        size_t batch = static_cast<size_t>(t.integer("batch_dims"));
        size_t outer = indices.shape.size() - 1;
        for_each_index(want.shape, [&](const Index& i) {
          Index at(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch));
          for (int64_t k = 0; k < indices.shape.back(); ++k) {
            Index which(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(outer));
            which.push_back(k);
            at.push_back(from_end(indices.at(which), x.shape[at.size()]));
          }
          at.insert(at.end(), i.begin() + static_cast<std::ptrdiff_t>(outer), i.end());
          want.at(i) = x.at(at);
        });
        expect_equal(t.results[0], want);
      },
      tuple_indices);
}

Tensor integers(Index data) {
  return Tensor::copy_of<int64_t>(Index{static_cast<int64_t>(data.size())}, i64, data);
}

TEST(Gather, AnIndexOutOfRangeIsAnError) {
  Tensor x = integers({1, 2, 3});
  EXPECT_EQ(Nd(run("gather", {x, integers({-3, 2})})).data, (std::vector<double>{1, 3}));
  EXPECT_THROW(run("gather", {x, integers({3})}), Error);
  EXPECT_THROW(run("gather", {x, integers({-4})}), Error);
  EXPECT_THROW(run("gather_elements", {x, integers({3})}), Error);
  EXPECT_THROW(run("scatter_elements", {x, integers({3}), integers({0})}), Error);
}

TEST(Gather, ReverseSequenceTurnsEachPrefix) {
  Fill lengths = [](size_t i, const Sample& s, Random& random) {
    int64_t time = s.attrs.find("time_axis")->as<int64_t>();
    return i == 1 ? random_tensor(i64, sample_shape(s, 1), random, 0,
                                  sample_shape(s, 0)[static_cast<size_t>(time)])
                  : Tensor();
  };
  try_samples(
      "reverse_sequence", 100,
      [](const Trial& t) {
        Nd x(t.operands[0]), n(t.operands[1]), want(x.shape);
        size_t batch = static_cast<size_t>(t.integer("batch_axis"));
        size_t time = static_cast<size_t>(t.integer("time_axis"));
        for_each_index(x.shape, [&](const Index& i) {
          Index at = i;
          int64_t length = static_cast<int64_t>(n.data[static_cast<size_t>(i[batch])]);
          if (i[time] < length) at[time] = length - 1 - i[time];
          want.at(i) = x.at(at);
        });
        expect_equal(t.results[0], want);
      },
      lengths);
}

double combine(const std::string& reduction, double old, double update) {
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "max") return std::max(old, update);
  if (reduction == "min") return std::min(old, update);
  return update;
}

TEST(Scatter, ElementsUpdateInOrder) {
  try_samples(
      "scatter_elements", 200,
      [](const Trial& t) {
        Nd want(t.operands[0]), indices(t.operands[1]), updates(t.operands[2]);
        size_t axis = static_cast<size_t>(t.axis("axis", static_cast<int64_t>(want.shape.size())));
        DataType dtype = t.operands[0].dtype();
        for_each_index(indices.shape, [&](const Index& i) {
          Index at = i;
          at[axis] = from_end(indices.at(i), want.shape[axis]);
          double v = combine(t.text("reduction"), want.at(at), updates.at(i));
          want.at(at) = dtype.is_float() ? v : double(wrap_to(dtype, static_cast<int64_t>(v)));
        });
        expect_equal(t.results[0], want, 4);
      },
      axis_indices);
}

TEST(Scatter, NdUpdatesSlices) {
  try_samples(
      "scatter_nd", 200,
      [](const Trial& t) {
        Nd want(t.operands[0]), indices(t.operands[1]), updates(t.operands[2]);
        std::ptrdiff_t outer = static_cast<std::ptrdiff_t>(indices.shape.size()) - 1;
        DataType dtype = t.operands[0].dtype();
        for_each_index(updates.shape, [&](const Index& i) {
          Index at;
          for (int64_t k = 0; k < indices.shape.back(); ++k) {
            Index which(i.begin(), i.begin() + outer);
            which.push_back(k);
            at.push_back(from_end(indices.at(which), want.shape[at.size()]));
          }
          at.insert(at.end(), i.begin() + outer, i.end());
          double v = combine(t.text("reduction"), want.at(at), updates.at(i));
          want.at(at) = dtype.is_float() ? v : double(wrap_to(dtype, static_cast<int64_t>(v)));
        });
        expect_equal(t.results[0], want, 4);
      },
      tuple_indices);
}

TEST(Gather, TypeErrorsNameTheIndices) {
  auto x = tensor_type(f32, {2, 3});
  EXPECT_EQ(type_error("gather", {x, tensor_type(f32, {1})}),
            "operator 'gather': operand 'indices' is f32, expected i32 or i64");
  EXPECT_EQ(type_error("gather", {x, tensor_type(u8, {1})}),
            "operator 'gather': operand 'indices' is u8, expected i32 or i64");
  EXPECT_EQ(
      type_error("gather_nd", {x, tensor_type(i64, {3})}),
      "operator 'gather_nd': 'indices' has 3 entries per index after 0 batch axes, but 'x' has "
      "rank 2");
  EXPECT_EQ(type_error("scatter_nd", {x, tensor_type(i64, {1}), tensor_type(f32, {3})},
                       attrs({{"reduction", String("sum")}})),
            "operator 'scatter_nd': 'reduction' is \"sum\", expected none, add, mul, max or min");
}

}  // namespace
}  // namespace tenon::graph

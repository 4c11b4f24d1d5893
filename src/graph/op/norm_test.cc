#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

using Index = std::vector<int64_t>;

// Calls `body` for the elements of each row: those that differ only on the axes in `along`.
void for_each_row(const Index& shape, const std::set<size_t>& along,
                  const std::function<void(const std::vector<Index>& row)>& body) {
  Index outer = shape, inner = shape;
  for (size_t i = 0; i < shape.size(); ++i) (along.count(i) ? outer : inner)[i] = 1;
  for_each_index(outer, [&](const Index& o) {
    std::vector<Index> row;
    for_each_index(inner, [&](const Index& k) {
      Index at = o;
      for (size_t i = 0; i < at.size(); ++i) at[i] += k[i];
      row.push_back(at);
    });
    body(row);
  });
}

double mean_of(const Nd& x, const std::vector<Index>& row) {
  double sum = 0;
  for (const Index& i : row) sum += x.at(i);
  return sum / static_cast<double>(row.size());
}

double variance_of(const Nd& x, const std::vector<Index>& row) {
  double mean = mean_of(x, row), sum = 0;
  for (const Index& i : row) sum += (x.at(i) - mean) * (x.at(i) - mean);
  return sum / static_cast<double>(row.size());
}

std::set<size_t> axes_from(int64_t first, size_t rank) {
  std::set<size_t> out;
  for (size_t i = static_cast<size_t>(first); i < rank; ++i) out.insert(i);
  return out;
}

TEST(Norm, SoftmaxAgreesWithItsDefinition) {
  for (bool logarithm : {false, true}) {
    try_samples(logarithm ? "log_softmax" : "softmax", 120, [&](const Trial& t) {
      Nd x(t.operands[0]), want(x.shape);
      size_t axis = static_cast<size_t>(t.axis("axis", static_cast<int64_t>(x.shape.size())));
      for_each_row(x.shape, {axis}, [&](const std::vector<Index>& row) {
        double sum = 0;
        for (const Index& i : row) sum += std::exp(x.at(i));
        for (const Index& i : row) {
          want.at(i) = logarithm ? x.at(i) - std::log(sum) : std::exp(x.at(i)) / sum;
        }
      });
      expect_equal(t.results[0], want);
    });
  }
}

TEST(Norm, SoftmaxOfLargeNumbersDoesNotOverflow) {
  std::vector<float> x = {1000, 1001, -1e30f};
  Tensor y = run("softmax", {Tensor::copy_of<float>(Index{3}, f32, x)});
  EXPECT_NEAR(Nd(y).data[1], 1 / (1 + std::exp(-1)), 1e-6);
}

TEST(Norm, LayerNormAgreesWithItsDefinition) {
  try_samples("layer_norm", 150, [](const Trial& t) {
    Nd x(t.operands[0]), want(x.shape);
    Index statistic = x.shape;
    int64_t axis = t.axis("axis", static_cast<int64_t>(x.shape.size()));
    for (size_t i = static_cast<size_t>(axis); i < statistic.size(); ++i) statistic[i] = 1;
    Nd mean(statistic), inverse(statistic);
    for_each_row(x.shape, axes_from(axis, x.shape.size()), [&](const std::vector<Index>& row) {
      if (row.empty()) return;
      Index r = row[0];
      for (size_t i = static_cast<size_t>(axis); i < r.size(); ++i) r[i] = 0;
      mean.at(r) = mean_of(x, row);
      inverse.at(r) = 1 / std::sqrt(variance_of(x, row) + t.real("epsilon"));
      for (const Index& i : row) {
        double v = (x.at(i) - mean.at(r)) * inverse.at(r);
        if (t.operands[1]) v *= Nd(t.operands[1]).broadcast(i);
        if (t.operands[2]) v += Nd(t.operands[2]).broadcast(i);
        want.at(i) = v;
      }
    });
    expect_equal(t.results[0], want, 4);
    if (!t.flag("statistics") || want.data.empty()) return;
    expect_equal(t.results[1], mean, 4);
    expect_equal(t.results[2], inverse, 4);
    EXPECT_EQ(t.results[1].dtype(),
              t.operands[0].dtype().is_narrow_float() ? f32 : t.operands[0].dtype());
  });
}

TEST(Norm, RmsNormAgreesWithItsDefinition) {
  try_samples("rms_norm", 100, [](const Trial& t) {
    Nd x(t.operands[0]), want(x.shape);
    int64_t axis = t.axis("axis", static_cast<int64_t>(x.shape.size()));
    for_each_row(x.shape, axes_from(axis, x.shape.size()), [&](const std::vector<Index>& row) {
      double sum = 0;
      for (const Index& i : row) sum += x.at(i) * x.at(i);
      double root = std::sqrt(sum / static_cast<double>(row.size()) + t.real("epsilon"));
      for (const Index& i : row) {
        want.at(i) = x.at(i) / root * (t.operands[1] ? Nd(t.operands[1]).broadcast(i) : 1);
      }
    });
    expect_equal(t.results[0], want);
  });
}

// Normalised over spatial axes and, with groups, over the channels of a group.
void compare_channels(const char* name) {
  try_samples(name, 120, [&](const Trial& t) {
    Nd x(t.operands[0]), scale(t.operands[1]), bias(t.operands[2]), want(x.shape);
    bool grouped = std::string(name) == "group_norm";
    int64_t groups = grouped ? t.integer("groups") : x.shape[1];
    Index split = x.shape;
    split[1] = groups == 0 ? 0 : x.shape[1] / groups;
    split.insert(split.begin() + 1, groups);
    Nd regrouped(split);
    regrouped.data = x.data;
    for_each_row(split, axes_from(2, split.size()), [&](const std::vector<Index>& row) {
      if (row.empty()) return;
      double mean = mean_of(regrouped, row);
      double deviation = std::sqrt(variance_of(regrouped, row) + t.real("epsilon"));
      for (const Index& i : row) {
        size_t c = static_cast<size_t>(i[1] * split[2] + i[2]);
        want.data[regrouped.offset(i)] =
            (regrouped.at(i) - mean) / deviation * scale.data[c] + bias.data[c];
      }
    });
    expect_equal(t.results[0], want, 4);
  });
}

TEST(Norm, InstanceNormAgreesWithItsDefinition) {
  compare_channels("instance_norm");
}
TEST(Norm, GroupNormAgreesWithItsDefinition) {
  compare_channels("group_norm");
}

TEST(Norm, BatchNormAgreesWithItsDefinition) {
  Fill positive = [](size_t i, const Sample& s, Random& random) {
    DataType dtype = type_as<TensorType>(s.operands[i])->dtype;
    return i == 4 ? random_tensor(dtype, sample_shape(s, i), random, 1, 20) : Tensor();
  };
  try_samples(
      "batch_norm", 100,
      [](const Trial& t) {
        Nd x(t.operands[0]), want(x.shape);
        size_t axis = static_cast<size_t>(t.integer("axis"));
        for_each_index(x.shape, [&](const Index& i) {
          auto p = [&](size_t k) { return Nd(t.operands[k]).data[static_cast<size_t>(i[axis])]; };
          want.at(i) = (x.at(i) - p(3)) / std::sqrt(p(4) + t.real("epsilon")) * p(1) + p(2);
        });
        expect_equal(t.results[0], want, 2);
      },
      positive);
}

TEST(Norm, LrnAgreesWithItsDefinition) {
  try_samples("lrn", 100, [](const Trial& t) {
    Nd x(t.operands[0]), want(x.shape);
    int64_t size = t.integer("size");
    for_each_index(x.shape, [&](const Index& i) {
      double sum = 0;
      for (int64_t c = i[1] - (size - 1) / 2; c <= i[1] + size / 2; ++c) {
        if (c < 0 || c >= x.shape[1]) continue;
        Index at = i;
        at[1] = c;
        sum += x.at(at) * x.at(at);
      }
      want.at(i) =
          x.at(i) / std::pow(t.real("bias") + t.real("alpha") / double(size) * sum, t.real("beta"));
    });
    expect_equal(t.results[0], want);
  });
}

TEST(Norm, TypeErrorsNameTheOperand) {
  auto x = tensor_type(f32, {2, 3});
  EXPECT_EQ(type_error("layer_norm", {x, tensor_type(f32, {4})}),
            "operator 'layer_norm': axis 0 of operand 'scale' and of 'x': 4 and 3 differ");
  EXPECT_EQ(type_error("instance_norm", {x, tensor_type(f32, {3}), tensor_type(f32, {2})}),
            "operator 'instance_norm': size of operand 'bias' and channels of 'x': 2 and 3 differ");
  auto c = tensor_type(f32, {3});
  EXPECT_EQ(type_error("group_norm", {x, c, c}, attrs({{"groups", 2}})),
            "operator 'group_norm': channels of 'x' modulo 2 groups: 1 and 0 differ");
  EXPECT_EQ(type_error("softmax", {tensor_type(f32, {})}),
            "operator 'softmax': axis -1 of a tensor of rank 0, which has none");
}

}  // namespace
}  // namespace tenon::graph

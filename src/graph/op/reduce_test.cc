#include "graph/op/run_operator_testing.h"

namespace tenon::graph {
namespace {

// The index of the result of the element at `i` when `axes` are reduced.
std::vector<int64_t> reduced_index(const std::vector<int64_t>& i, const std::set<int64_t>& axes,
                                   bool keepdims) {
  std::vector<int64_t> out;
  for (size_t k = 0; k < i.size(); ++k) {
    bool reduced = axes.count(static_cast<int64_t>(k)) > 0;
    if (!reduced) out.push_back(i[k]);
    if (reduced && keepdims) out.push_back(0);
  }
  return out;
}

std::vector<int64_t> reduced_shape(const std::vector<int64_t>& shape, const std::set<int64_t>& axes,
                                   bool keepdims) {
  std::vector<int64_t> out;
  for (size_t k = 0; k < shape.size(); ++k) {
    bool reduced = axes.count(static_cast<int64_t>(k)) > 0;
    if (!reduced) out.push_back(shape[k]);
    if (reduced && keepdims) out.push_back(1);
  }
  return out;
}

void compare(const char* name, double start, double (*combine)(double, double), bool mean = false,
             int64_t high = 20) {
  Fill fill = [&](size_t i, const Sample& s, Random& random) {
    return random_tensor(type_as<TensorType>(s.operands[i])->dtype, sample_shape(s, i), random,
                         -high, high);
  };
  try_samples(
      name, 150,
      [&](const Trial& t) {
        Nd x(t.operands[0]);
        int64_t rank = static_cast<int64_t>(x.shape.size());
        std::set<int64_t> axes;
        int64_t count = 1;
        for (int64_t a : t.ints("axes")) axes.insert(a < 0 ? a + rank : a);
        for (int64_t a : axes) count *= x.shape[static_cast<size_t>(a)];
        bool keep = t.flag("keepdims");
        Nd want(reduced_shape(x.shape, axes, keep), start);
        for_each_index(x.shape, [&](const std::vector<int64_t>& i) {
          double& sum = want.at(reduced_index(i, axes, keep));
          sum = combine(sum, x.at(i));
        });
        if (mean) {
          for (double& v : want.data) {
            v /= static_cast<double>(count);
            if (!t.results[0].dtype().is_float()) v = std::trunc(v);
          }
        }
        expect_equal(t.results[0], want);
      },
      fill);
}

TEST(Reduce, AgreesWithItsDefinition) {
  compare("reduce_sum", 0, [](double a, double b) { return a + b; });
  compare(
      "reduce_prod", 1, [](double a, double b) { return a * b; }, false, 2);
  compare(
      "reduce_mean", 0, [](double a, double b) { return a + b; }, true);
  compare("reduce_max", -1e9, [](double a, double b) { return std::max(a, b); });
  compare("reduce_min", 1e9, [](double a, double b) { return std::min(a, b); });
  compare("reduce_and", 1, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; });
  compare("reduce_or", 0, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; });
}

TEST(Reduce, OfNothingGivesTheIdentity) {
  Tensor none = Tensor::empty({2, 0}, f32);
  Attrs last = attrs({{"axes", attr_ints({1})}});
  EXPECT_EQ(Nd(run("reduce_sum", {none}, last)).data, (std::vector<double>{0, 0}));
  EXPECT_EQ(Nd(run("reduce_prod", {none}, last)).data, (std::vector<double>{1, 1}));
  EXPECT_EQ(Nd(run("reduce_max", {none}, last)).data, (std::vector<double>{-INFINITY, -INFINITY}));
  EXPECT_TRUE(std::isnan(Nd(run("reduce_mean", {none}, last)).data[0]));
}

TEST(Reduce, HalfSumsAreKeptInSinglePrecision) {
  Tensor x = Tensor::empty({4096}, f16);
  for (int64_t i = 0; i < 4096; ++i) {
    loop::scalar_store(f16, static_cast<char*>(x.data()) + 2 * i, loop::float_bits(1));
  }
  Tensor y = run("reduce_sum", {x}, attrs({{"axes", attr_ints({0})}}));
  EXPECT_EQ(Nd(y).data[0], 4096);  // a sum in f16 would stop at 2048
}

TEST(Reduce, ArgmaxAndArgminSelectTheEndAskedFor) {
  for (const char* name : {"argmax", "argmin"}) {
    bool greatest = std::string(name) == "argmax";
    try_samples(name, 150, [&](const Trial& t) {
      Nd x(t.operands[0]);
      int64_t axis = t.axis("axis", static_cast<int64_t>(x.shape.size()));
      bool keep = t.flag("keepdims"), last = t.flag("select_last");
      Nd want(reduced_shape(x.shape, {axis}, keep)), best(want.shape, greatest ? -1e9 : 1e9);
      for_each_index(x.shape, [&](const std::vector<int64_t>& i) {
        std::vector<int64_t> r = reduced_index(i, {axis}, keep);
        double v = x.at(i), old = best.at(r);
        if ((greatest ? v > old : v < old) || (last && v == old)) {
          best.at(r) = v;
          want.at(r) = static_cast<double>(i[static_cast<size_t>(axis)]);
        }
      });
      expect_equal(t.results[0], want);
    });
  }
}

TEST(Reduce, TypeErrorsNameTheAxis) {
  auto x = tensor_type(f32, {2, 3});
  EXPECT_EQ(type_error("reduce_sum", {x}, attrs({{"axes", attr_ints({2})}})),
            "operator 'reduce_sum': axis 2 is outside -2..1 of rank 2");
  EXPECT_EQ(type_error("reduce_sum", {x}, attrs({{"axes", attr_ints({1, -1})}})),
            "operator 'reduce_sum': axis 1 is given twice");
  EXPECT_EQ(type_error("argmax", {tensor_type(f32, {0})}),
            "operator 'argmax': the axis has no elements: 1 is greater than 0");
}

}  // namespace
}  // namespace tenon::graph

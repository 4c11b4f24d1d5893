// What imported models compute: each is built by hand, imported and evaluated. These tests cover
// what must hold whether sizes and operands are known at import or only at run time.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "evaluate/reference_evaluator.h"
#include "import/onnx/import_model.h"
#include "import/onnx/model_maker_testing.h"

namespace tenon::driver {
namespace {

using onnx::ModelMaker;
using Ints = std::vector<int64_t>;

Tensor ints(const Ints& values) {
  Ints shape = {static_cast<int64_t>(values.size())};
  return Tensor::copy_of(std::span<const int64_t>(shape), i64, std::span<const int64_t>(values));
}

Ints counted(int64_t n) {
  Ints out;
  for (int64_t i = 0; i < n; ++i) out.push_back(i);
  return out;
}

// The elements of the first result, which is a tensor of i64.
Ints run(const ModelMaker& m, const std::vector<Any>& args) {
  initialise();
  graph::Module module = onnx::import_model(m.model).module;
  graph::ReferenceEvaluator evaluator(codegen::baseline_target());
  Tensor y = evaluator.run(module, module->functions.at("main"), args)[0].as<Tensor>();
  return Ints(y.data_as<int64_t>(), y.data_as<int64_t>() + y.count());
}

// ---- Slice ----

struct Bounds {
  int64_t start, end, step;
};

Ints slice_of(int64_t n, const Bounds& bounds, bool size_known, bool bounds_known) {
  ModelMaker m;
  if (size_known) {
    m.input("x", {static_cast<int>(n)}, 7);
  } else {
    m.input("x", {"n"}, 7);
  }
  std::vector<Any> args = {Any(ints(counted(n)))};
  for (const auto& [name, value] : {std::pair("starts", bounds.start), {"ends", bounds.end}}) {
    if (bounds_known) {
      m.ints(name, {value});
    } else {
      m.input(name, {1}, 7);
      args.emplace_back(ints({value}));
    }
  }
  m.ints("axes", {0}).ints("steps", {bounds.step});
  m.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"}).output("y");
  return run(m, args);
}

TEST(ImportedSlice, IsTheSameWhateverIsKnownBeforehand) {
  const Bounds all[] = {
      {-10, -1000, -1}, {-10, -1000, -2}, {INT32_MIN, -1000, -1},    {INT64_MIN, -7, -3},
      {-6, -6, -1},     {2, -100, -1},    {-1, INT64_MIN, -1},       {10, -10, -3},
      {0, 0, -1},       {-10, 3, 2},      {INT64_MIN, INT64_MAX, 1}, {4, 2, 1}};
  for (int64_t n : {5, 1, 0}) {
    for (const Bounds& b : all) {
      // As ONNX's specification clamps: starts to [0, n) for a negative step, else to [0, n]; ends
      // to [-1, n) or [0, n].
      auto place = [&](int64_t v) { return v < 0 && v >= -1000000 ? v + n : v; };
      int64_t low = b.step < 0 ? -1 : 0, high = b.step < 0 ? n - 1 : n;
      Ints expected;
      int64_t end = std::clamp(place(b.end), low, high);
      int64_t i = n == 0 ? end : std::clamp<int64_t>(place(b.start), 0, high);
      for (; b.step > 0 ? i < end : i > end; i += b.step) expected.push_back(i);
      for (bool size_known : {true, false}) {
        for (bool bounds_known : {true, false}) {
          EXPECT_EQ(slice_of(n, b, size_known, bounds_known), expected)
              << n << " elements, " << b.start << ":" << b.end << ":" << b.step << ", size "
              << (size_known ? "known" : "symbolic") << ", bounds "
              << (bounds_known ? "known" : "computed");
        }
      }
    }
  }
}

// As for a bag of embeddings, whose bounds are themselves sliced out of a list.
TEST(ImportedSlice, MayHaveANumberOfAxesThatIsKnownAtRunTime) {
  const auto rows = [](const Ints& starts, const Ints& ends, const Ints& axes, int64_t step) {
    ModelMaker m;
    m.input("x", {4, "n"}, 7).input("starts", {"k"}, 7).input("ends", {"k"}, 7);
    const Ints shape = {4, 3}, elements = counted(12);
    std::vector<Any> args = {
        Tensor::copy_of(std::span<const int64_t>(shape), i64, std::span<const int64_t>(elements)),
        ints(starts), ints(ends)};
    std::vector<std::string> names = {"x", "starts", "ends"};
    if (!axes.empty()) {
      m.input("axes", {"k"}, 7);
      args.emplace_back(ints(axes));
      names.emplace_back("axes");
    } else if (step != 1) {
      names.emplace_back("");
    }
    if (step != 1) {
      m.ints("steps", {step});
      names.emplace_back("steps");
    }
    m.node("Slice", names, {"y"}).output("y");
    return run(m, args);
  };
  EXPECT_EQ(rows({2}, {3}, {}, 1), (Ints{6, 7, 8}));
  EXPECT_EQ(rows({-1, 1}, {INT64_MAX, 2}, {}, 1), (Ints{10}));
  EXPECT_EQ(rows({1}, {3}, {1}, 1), (Ints{1, 2, 4, 5, 7, 8, 10, 11}));
  EXPECT_EQ(rows({0}, {4}, {}, 3), (Ints{0, 1, 2, 9, 10, 11}));
  EXPECT_EQ(rows({-1}, {-3}, {-1}, -1), (Ints{2, 1, 5, 4, 8, 7, 11, 10}));
  EXPECT_THROW(rows({0, 0, 0}, {1, 1, 1}, {}, 1), Error);
}

// ---- Squeeze ----

TEST(ImportedSqueeze, WithoutAxesRefusesASymbolicSizeThatIsOne) {
  ModelMaker m;
  m.input("x", {"n", 1, 3}, 7).node("Squeeze", {"x"}, {"y"}).output("y");
  auto args = [](int64_t n) {
    Ints shape = {n, 1, 3}, elements = counted(3 * n);
    return std::vector<Any>{
        Tensor::copy_of(std::span<const int64_t>(shape), i64, std::span<const int64_t>(elements))};
  };
  EXPECT_EQ(run(m, args(2)), counted(6));
  EXPECT_EQ(run(m, args(0)), Ints());
  try {
    run(m, args(1));  // ONNX's result has rank 1
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    EXPECT_EQ(
        e.message(),
        "squeeze without axes keeps axis 0 of size n, which is 1 here; compile with fixed sizes "
        "(--dim or --shape) to remove it: found 0 (max(n - 1, -n + 1)), which must be at least 1");
  }
}

// ---- sizes computed in int32 ----

ModelMaker sizes_multiplied_in_int32() {
  ModelMaker m;
  m.input("x", {"n", "m", 0}, 7);
  m.node("Shape", {"x"}, {"shape"}, {ModelMaker::integer("end", 2)});
  m.node("Cast", {"shape"}, {"narrow"}, {ModelMaker::integer("to", 6)});
  m.node("ReduceProd", {"narrow"}, {"product"}, {ModelMaker::integer("keepdims", 0)});
  m.node("Cast", {"product"}, {"y"}, {ModelMaker::integer("to", 7)}).output("y");
  return m;
}

Any empty_tensor(int64_t n, int64_t m) {
  Ints shape = {n, m, 0};
  return Tensor::empty(std::span<const int64_t>(shape), i64);
}

TEST(ImportedInt32, SizesThatFitArePassedOn) {
  EXPECT_EQ(run(sizes_multiplied_in_int32(), {empty_tensor(65535, 32768)}), Ints{65535 * 32768});
}

TEST(ImportedInt32, SizesThatWouldWrapAreRefused) {
  try {
    Ints found = run(sizes_multiplied_in_int32(), {empty_tensor(65536, 65536)});
    FAIL() << "ONNX computes 0 in int32, this " << found[0];
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    EXPECT_EQ(e.message(),
              "reduce_prod: a size computed in i32: found 4294967296 (m*n), which must be at most "
              "2147483647");
  }
}

}  // namespace
}  // namespace tenon::driver

#include "evaluate/kernel_cache.h"

#include <gtest/gtest.h>

#include "graph/ir/module.h"
#include "graph/ir/text.h"
#include "graph/op/register.h"
#include "loop/types.h"
#include "object/tensor.h"

namespace tenon::graph {
namespace {

class KernelCacheTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    loop::register_loop_types();
    register_graph_types();
    register_operators();
  }

  // A kernel of that name that reads x[at] of x: tensor[n; i64].
  static loop::KernelInterfaceRef reader(const std::string& name, int at) {
    const std::string text = cat("kernel @", name, R"((%x: tensor[n; i64]) -> (%y: tensor[1; i64]) {
        %y[0] = %x[)",
                                 at, R"(]
      }
      fn @main(%x: tensor[n; i64]) -> tensor[1; i64] { kernel @)",
                                 name, R"((%x) })");
    return parse_module(text, "test.tn")->kernels.at(String(name));
  }

  static int64_t read(const PreparedKernel& kernel, const std::vector<int64_t>& x) {
    Tensor y = integers({-1});
    kernel.call({integers(x), y});
    return *y.data_as<int64_t>();
  }

  static Tensor integers(const std::vector<int64_t>& values) {
    const std::vector<int64_t> shape = {static_cast<int64_t>(values.size())};
    return Tensor::copy_of<int64_t>(shape, i64, values);
  }

  static std::string error_of(const PreparedKernel& kernel) {
    try {
      read(kernel, {});
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }

  static codegen::Target target() { return codegen::baseline_target(); }
};

TEST_F(KernelCacheTest, DropsTheOneThatWasAskedForLongestAgo) {
  KernelCache cache(target(), KernelMode::kScheduled, /*capacity=*/2);
  cache.prepare({{"first", "k", reader("k", 0)}});
  cache.prepare({{"second", "k", reader("k", 1)}});
  EXPECT_NE(cache.find("first"), nullptr);
  cache.prepare({{"third", "k", reader("k", 2)}});
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.find("second"), nullptr);
  EXPECT_EQ(read(*cache.find("first"), {5, 6, 7}), 5);
  EXPECT_EQ(read(*cache.find("third"), {5, 6, 7}), 7);
}

TEST_F(KernelCacheTest, WhoHoldsADroppedKernelCanCallIt) {
  KernelCache cache(target(), KernelMode::kScheduled, /*capacity=*/1);
  const auto kernels = cache.prepare({{"first", "k", reader("k", 0)},
                                      {"second", "k", reader("k", 1)},
                                      {"third", "k", reader("k", 2)}});
  EXPECT_EQ(cache.size(), 1u);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(read(*kernels[static_cast<size_t>(i)], {5, 6, 7}), 5 + i);
}

TEST_F(KernelCacheTest, ErrorsCarryTheKernelsName) {
  KernelCache cache(target());
  const auto kernels = cache.prepare({{"a", "pick", reader("pick", 0)},
                                      {"b", "pick", reader("pick", 1)},
                                      {"c", "other", reader("other", 0)}});
  const std::string what = ": an access lies outside axis 0 of argument 0";
  EXPECT_EQ(error_of(*kernels[0]), cat("kernel 'pick'", what));
  EXPECT_EQ(error_of(*kernels[1]), cat("kernel 'pick_1'", what));
  EXPECT_EQ(error_of(*kernels[2]), cat("kernel 'other'", what));
}

}  // namespace
}  // namespace tenon::graph

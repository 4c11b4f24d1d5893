#include "graph/ir/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "object/file_bytes.h"

namespace tenon::graph {
namespace {

Tensor counted(std::vector<int64_t> shape) {
  const Tensor tensor = Tensor::empty(shape, f32);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    tensor.data_as<float>()[i] = static_cast<float>(i);
  }
  return tensor;
}

// So that a program uses them where they are, whatever is among them.
TEST(Weights, AreMappedAndAligned) {
  const std::string path =
      std::filesystem::path(testing::TempDir()) / "tenon_weights_test.safetensors";
  const std::vector<std::pair<std::string, Tensor>> written = {{"odd", counted({3})},
                                                               {"whole", counted({4, 16})},
                                                               {"none", counted({0})},
                                                               {"more", counted({5, 5})},
                                                               {"last", counted({32})}};
  write_weights(path, written);
  const WeightFile file(path);
  std::filesystem::remove(path);
  EXPECT_EQ(file.tensors().size(), written.size());
  for (const auto& [name, tensor] : written) {
    const Tensor found = file.find(name);
    ASSERT_TRUE(found) << name;
    ASSERT_EQ(to_text(found), to_text(tensor));
    EXPECT_TRUE(std::equal(tensor.data_as<float>(), tensor.data_as<float>() + tensor.count(),
                           found.data_as<const float>()))
        << name;
    EXPECT_TRUE(mapped_file_of(found)) << name;
    if (tensor.bytes() % 64 == 0) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(found.data()) % 64, 0u) << name;
    }
  }
}

}  // namespace
}  // namespace tenon::graph

#include "graph/ir/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "graph/ir/referenced_file.h"
#include "object/file_bytes.h"
#include "object/string_tensor.h"
#include "support/error_testing.h"

namespace tenon::graph {
namespace {

Tensor counted(std::vector<int64_t> shape) {
  Tensor tensor = Tensor::empty(shape, f32);
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

// The error of a weight file with this header and as many bytes of data.
std::string error_of_header(std::string_view header, size_t data = 8) {
  const std::string path =
      std::filesystem::path(testing::TempDir()) / "tenon_weights_damage.safetensors";
  const uint64_t size = header.size();
  std::ofstream(path) << std::string_view(reinterpret_cast<const char*>(&size), sizeof size)
                      << header << std::string(data, '\0');
  std::string error = failure_of([&] { const WeightFile file(path); });
  std::filesystem::remove(path);
  return error;
}

TEST(Weights, EachWayToBeDamagedIsNamed) {
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  std::string ranks = "1";
  for (int i = 0; i < 32; ++i) ranks += ",1";
  const std::pair<std::string, const char*> cases[] = {
      {"[]", "its header is not a JSON object"},
      {"1", "its header is not a JSON object"},
      {"{", "its header is not a JSON object"},
      {R"({"w": )" + deep + "}", "its header nests too deeply"},
      {R"({"w": 1})", R"("w": dtype, shape and data_offsets are needed)"},
      {R"({"w": {"dtype": "F32", "shape": [2]}})",
       R"("w": dtype, shape and data_offsets are needed)"},
      {R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0]}})",
       R"("w": dtype, shape and data_offsets are needed)"},
      {R"({"w": {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}})",
       R"("w": an unknown dtype)"},
      {R"({"w": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})",
       R"("w": a size is not a number)"},
      {R"({"w": {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}})",
       R"("w": a size is not a number)"},
      {R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 9223372036854775808]}})",
       R"("w": a size is not a number)"},
      {R"({"w": {"dtype": "F32", "shape": [)" + ranks + R"(], "data_offsets": [0, 4]}})",
       R"("w": too many dimensions)"},
      {R"({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})",
       R"("w": its bytes don't fit its shape or the file)"},
      {R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})",
       R"("w": its bytes don't fit its shape or the file)"},
      {R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
           "w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
       R"("w": it appears twice)"}};
  for (const auto& [header, found] : cases) {
    EXPECT_THAT(error_of_header(header), testing::HasSubstr(found)) << header;
  }
  EXPECT_EQ(error_of_header(R"({"__metadata__": {"format": "pt"},
                               "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})"),
            "no error");
}

TEST(Weights, AFileThatIsTooShortIsDamaged) {
  const std::string path =
      std::filesystem::path(testing::TempDir()) / "tenon_weights_short.safetensors";
  std::ofstream(path) << "abc";
  EXPECT_THAT(failure_of([&] { const WeightFile file(path); }), testing::HasSubstr("3 bytes"));
  std::ofstream(path) << "\x09" << std::string(7, '\0') << "{}";
  EXPECT_THAT(failure_of([&] { const WeightFile file(path); }),
              testing::HasSubstr("a header of 9 bytes in 10"));
  std::filesystem::remove(path);
}

TEST(Weights, StringsAreNotWritten) {
  const std::string path = std::filesystem::path(testing::TempDir()) / "tenon_weights_strings";
  const Tensor strings =
      string_tensor(std::vector<int64_t>{1}, std::vector<std::string_view>{"text"});
  EXPECT_FALSE(weight_file_holds(strings.dtype()));
  EXPECT_THAT(failure_of([&] {
                write_weights(path, {{"w", strings}});
              }),
              testing::HasSubstr("a weight file can't hold 'w'"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ReferencedFile, EachRefusalHasItsReason) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "tenon_referenced";
  std::filesystem::create_directories(folder / "within");
  std::filesystem::create_directory_symlink("..", folder / "within" / "up");
  std::ofstream(folder / "outside") << "x";
  const std::pair<std::string, const char*> cases[] = {
      {"", "empty"},
      {std::string("a\0b", 3), "not a file name"},
      {"/etc/passwd", "absolute path"},
      {"../outside", "leaves the folder"},
      {"none", "No such file or directory"},
      {"up/outside", "a link that leaves the folder"},
      {".", "not a regular file"}};
  for (const auto& [name, why] : cases) {
    EXPECT_THAT(failure_of([&, &name = name] {
                  referenced_file(folder / "within", name, "the weight file", "text");
                }),
                testing::HasSubstr(why))
        << name;
  }
  EXPECT_THAT(failure_of([&] { referenced_file(folder / "none", "w", "the weight file", "text"); }),
              testing::HasSubstr("the folder cannot be read"));
  const std::string within = folder / "within";
  EXPECT_THAT(failure_of([&] {
                referenced_file(within, "../outside", "the weight file", "text", &within);
              }),
              testing::HasSubstr("outside the folder"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::graph

#include "driver/foreign_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tenon::driver {
namespace {

using namespace std::string_literals;

std::string name_of(const std::string& content) {
  const auto found = recognise_foreign(content);
  return found ? found->name : "unknown";
}

TEST(ForeignFile, IsKnownByItsContent) {
  const std::string zip = "PK\3\4"s + std::string(22, '\0');
  EXPECT_EQ(name_of(zip + "archive/data.pkl"), "a PyTorch checkpoint");
  EXPECT_EQ(name_of(zip + "m/data/0" + std::string(1000, 'x') + "m/archive_format" +
                    std::string(1000, '\0')),
            "a model that torch.export saved");
  EXPECT_EQ(name_of(zip + "metadata.json" + std::string(1000, 'x') + "model.weights.h5"),
            "a Keras model");
  EXPECT_EQ(name_of(zip + "x.npy"), "a NumPy archive (.npz)");
  EXPECT_EQ(name_of(zip + "notes.txt"), "a zip archive");
  EXPECT_EQ(name_of("\x80\2\x8a\n\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."),
            "a PyTorch checkpoint");
  EXPECT_EQ(name_of("\x80\4\x95..."), "a Python pickle");
  EXPECT_EQ(name_of("\x1c\0\0\0TFL3"s), "a TensorFlow Lite model");
  EXPECT_EQ(name_of("GGUF\3"), "a GGUF file");
  EXPECT_EQ(name_of("\x1f\x8b\x08"), "gzip-compressed data");
  EXPECT_EQ(name_of(std::string(257, 'x') + "ustar"), "a tar archive");
  EXPECT_EQ(name_of("version https://git-lfs.github.com/spec/v1\noid"),
            "a Git LFS pointer, without the file's content");
  EXPECT_EQ(name_of("<!DOCTYPE html>"), "an HTML page");
  EXPECT_EQ(name_of(" {\n \"model_type\": \"bert\"}"), "JSON");
  EXPECT_EQ(name_of("ir_version: 8\n"), "an ONNX model as text");
}

TEST(ForeignFile, SafetensorsHaveAJsonHeaderThatEndsInTheFile) {
  EXPECT_EQ(name_of("\2\0\0\0\0\0\0\0{}"s), "a safetensors file, which holds weights alone");
  EXPECT_EQ(name_of("\3\0\0\0\0\0\0\0{}"s), "unknown");
}

TEST(ForeignFile, SavedModelsAreToldFromOldOnnxModels) {
  EXPECT_EQ(name_of("\x08\x01\x12\x05\x0a\x03..."), "a TensorFlow SavedModel");
  EXPECT_EQ(name_of("\x08\x01\x12\x05maker"), "unknown");
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tenon_saved_model";
  std::filesystem::create_directory(folder);
  EXPECT_FALSE(recognise_foreign_folder(folder));
  const std::ofstream made(folder / "saved_model.pb");
  EXPECT_TRUE(recognise_foreign_folder(folder));
  std::filesystem::remove_all(folder);
}

TEST(ForeignFile, WhatTenonReadsIsNotForeign) {
  for (const char* text : {"", "fn @main() -> i64 { 1 }", "func @f() -> i64 {",
                           "\x08\x08\x12\x04onnx", "TENON", "[", "{ %x }"}) {
    EXPECT_EQ(name_of(text), "unknown") << text;
  }
}

}  // namespace
}  // namespace tenon::driver

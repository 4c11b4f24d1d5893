#include "driver/foreign_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

namespace tenon::driver {
namespace {

using namespace std::string_view_literals;

constexpr char kExport[] =
    "export the model to ONNX: torch.onnx.export(model, args, \"model.onnx\")";
constexpr char kCompileInPython[] =
    "compile it in Python: tenon.compile(torch.export.load(\"model.pt2\")).save(\"model.tnx\")";
constexpr char kConvert[] = "convert the model to ONNX with tf2onnx: python -m tf2onnx.convert";
constexpr char kOriginal[] = "export the model to ONNX from the framework that it was made with";
constexpr char kArray[] = "arrays are inputs of programs: --input NAME=FILE.npy";
constexpr char kImage[] = "an image is an input: convert it to an array, --input NAME=FILE.npy";
constexpr char kUnpack[] = "unpack it, and give the model that is in it";

// A file that begins with `magic` after `offset` bytes, and, if `inside` is not empty, has that
// text in its first kHead or its last kTail bytes, where a zip archive has the names of its files.
// The first row that matches counts.
struct Row {
  size_t offset;
  std::string_view magic, inside;
  ForeignFile file;
};
constexpr size_t kHead = 512;
constexpr size_t kTail = size_t{64} << 10;

constexpr Row kRows[] = {
    {0, "PK\3\4"sv, "/data.pkl"sv, {"a PyTorch checkpoint", kExport}},
    {0, "PK\3\4"sv, "/archive_format"sv, {"a model that torch.export saved", kCompileInPython}},
    {0, "PK\3\4"sv, ".npy"sv, {"a NumPy archive (.npz)", kArray}},
    {0, "PK\3\4"sv, "model.weights.h5"sv, {"a Keras model", kConvert}},
    {0, "PK\3\4"sv, ""sv, {"a zip archive", kUnpack}},
    {0,
     "\x80\2\x8a\n\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv,
     ""sv,
     {"a PyTorch checkpoint", kExport}},
    {0, "\x80\2"sv, ""sv, {"a Python pickle", kOriginal}},
    {0, "\x80\3"sv, ""sv, {"a Python pickle", kOriginal}},
    {0, "\x80\4"sv, ""sv, {"a Python pickle", kOriginal}},
    {0, "\x80\5"sv, ""sv, {"a Python pickle", kOriginal}},
    {0, "\x89HDF\r\n\x1a\n"sv, ""sv, {"an HDF5 file, such as a Keras model", kConvert}},
    {4, "TFL3"sv, ""sv, {"a TensorFlow Lite model", kConvert}},
    {4,
     "ORTM"sv,
     ""sv,
     {"a model in ONNX Runtime's own format (.ort)", "give the ONNX model that it was made from"}},
    {4, "ET12"sv, ""sv, {"an ExecuTorch program", kExport}},
    {0, "GGUF"sv, ""sv, {"a GGUF file", kOriginal}},
    {0, "\x93NUMPY"sv, ""sv, {"a NumPy array", kArray}},
    {0, "\x89PNG"sv, ""sv, {"a PNG image", kImage}},
    {0, "\xff\xd8\xff"sv, ""sv, {"a JPEG image", kImage}},
    {0,
     "\177ELF"sv,
     ""sv,
     {"a native program or library", "a library of functions is loaded by its host"}},
    {0, "\x1f\x8b"sv, ""sv, {"gzip-compressed data", "decompress it first: gunzip"}},
    {0, "BZh"sv, ""sv, {"bzip2-compressed data", "decompress it first: bunzip2"}},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     ""sv,
     {"xz-compressed data", "decompress it first: unxz"}},
    {0, "\x28\xb5\x2f\xfd"sv, ""sv, {"zstd-compressed data", "decompress it first: unzstd"}},
    {257, "ustar"sv, ""sv, {"a tar archive", kUnpack}},
    {0,
     "version https://git-lfs.github.com/spec/"sv,
     ""sv,
     {"a Git LFS pointer, without the file's content", "fetch the content: git lfs pull"}},
    {0,
     "<!DOCTYPE html"sv,
     ""sv,
     {"an HTML page", "the link leads to a page about the file: download the file itself"}},
    {0,
     "<!doctype html"sv,
     ""sv,
     {"an HTML page", "the link leads to a page about the file: download the file itself"}},
    {0,
     "<html"sv,
     ""sv,
     {"an HTML page", "the link leads to a page about the file: download the file itself"}},
    {0, "<?xml"sv, ""sv, {"an XML file, such as an OpenVINO model", kOriginal}},
    {0,
     "ir_version:"sv,
     ""sv,
     {"an ONNX model as text",
      "save it in ONNX's binary format: onnx.save(model, \"model.onnx\")"}},
};

// A header of JSON after its length in 8 bytes.
bool is_safetensors(std::string_view content) {
  if (content.size() < 10 || content[8] != '{') return false;
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(content[i]);
  return length >= 2 && length <= content.size() - 8;
}

// A SavedModel of TensorFlow's protobuf schema: version 1, then a graph, whose first field is a
// message. The second field of an ONNX model of IR version 1 is the producer's name.
bool is_saved_model(std::string_view content) {
  constexpr auto kBegin = "\x08\x01\x12"sv;
  if (!content.starts_with(kBegin)) return false;
  size_t at = kBegin.size();
  while (at < content.size() && static_cast<unsigned char>(content[at]) >= 0x80) ++at;
  return at + 1 < content.size() && content[at + 1] == '\x0a';
}

bool begins_like_json(std::string_view content) {
  const std::string_view blanks = " \t\r\n";
  const size_t first = content.find_first_not_of(blanks);
  if (first == std::string_view::npos || (content[first] != '{' && content[first] != '[')) {
    return false;
  }
  const size_t next = content.find_first_not_of(blanks, first + 1);
  return next != std::string_view::npos &&
         "\"{[}]-0123456789tfn"sv.find(content[next]) != std::string_view::npos;
}

}  // namespace

std::optional<ForeignFile> recognise_foreign(std::string_view content) {
  const std::string_view head = content.substr(0, kHead);
  const std::string_view tail = content.substr(content.size() - std::min(content.size(), kTail));
  const auto has = [&](std::string_view text) {
    return head.find(text) != std::string_view::npos || tail.find(text) != std::string_view::npos;
  };
  for (const Row& row : kRows) {
    if (content.size() < row.offset || !content.substr(row.offset).starts_with(row.magic)) continue;
    if (row.inside.empty() || has(row.inside)) return row.file;
  }
  if (is_safetensors(content)) {
    return ForeignFile{"a safetensors file, which holds weights alone", kOriginal};
  }
  if (is_saved_model(content)) return ForeignFile{"a TensorFlow SavedModel", kConvert};
  if (begins_like_json(head)) return ForeignFile{"JSON", kOriginal};
  return std::nullopt;
}

std::optional<ForeignFile> recognise_foreign_folder(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(path) / "saved_model.pb", ignored)) {
    return ForeignFile{"a TensorFlow SavedModel", kConvert};
  }
  return std::nullopt;
}

}  // namespace tenon::driver

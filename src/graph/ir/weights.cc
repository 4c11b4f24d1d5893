#include "graph/ir/weights.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/error.h"

namespace tenon::graph {

namespace {

struct NamedDtype {
  const char* name;
  DataType dtype;
};
constexpr NamedDtype kDtypes[] = {
    {"BOOL", boolean}, {"I8", i8},   {"I16", i16},   {"I32", i32}, {"I64", i64},
    {"U8", u8},        {"U16", u16}, {"U32", u32},   {"U64", u64}, {"F16", f16},
    {"F32", f32},      {"F64", f64}, {"BF16", bf16},
};

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::Damaged, cat(path, " is not a weight file"))
      .found(what)
      .expected("safetensors, as the printer writes it");
}

}  // namespace

WeightFile::WeightFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || !std::filesystem::is_regular_file(path)) {
    throw Error(ErrorKind::Usage, cat("the weight file ", path, " can't be opened"))
        .expected("a safetensors file");
  }
  auto size = static_cast<int64_t>(in.tellg());
  in.seekg(0);
  uint64_t header_size = 0;
  if (size < 8) damaged(path, cat(size, " bytes"));
  in.read(reinterpret_cast<char*>(&header_size), 8);
  if (header_size > static_cast<uint64_t>(size - 8)) {
    damaged(path, cat("a header of ", header_size, " bytes in ", size));
  }
  std::string header(header_size, '\0');
  in.read(header.data(), static_cast<std::streamsize>(header_size));
  int64_t data_size = size - 8 - static_cast<int64_t>(header_size);
  Tensor all = Tensor::empty({data_size}, u8);
  in.read(all.data_as<char>(), data_size);
  if (!in) damaged(path, "it ended while it was read");

  nlohmann::json json = nlohmann::json::parse(header, nullptr, false);
  if (!json.is_object()) damaged(path, "its header is not a JSON object");
  for (const auto& item : json.items()) {
    const std::string& key = item.key();
    const nlohmann::json& entry = item.value();
    if (key == "__metadata__") continue;
    auto bad = [&](const char* what) { damaged(path, cat("'", key, "': ", what)); };
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
      bad("dtype, shape and data_offsets are needed");
    }
    auto natural = [&](const nlohmann::json& j) {
      if (!j.is_number_unsigned() || j.get<uint64_t>() > INT64_MAX) bad("a size is not a number");
      return static_cast<int64_t>(j.get<uint64_t>());
    };
    DataType dtype;
    for (const NamedDtype& d : kDtypes) {
      if (entry["dtype"] == d.name) dtype = d.dtype;
    }
    if (dtype.is_void()) bad("an unknown dtype");
    std::vector<int64_t> shape;
    for (const auto& d : entry["shape"]) shape.push_back(natural(d));
    if (shape.size() > static_cast<size_t>(kMaxRank)) bad("too many dimensions");
    int64_t begin = natural(entry["data_offsets"][0]), end = natural(entry["data_offsets"][1]);
    auto bytes = byte_count(shape, dtype);
    if (!bytes || begin > end || end > data_size || end - begin != *bytes) {
      bad("its bytes don't fit its shape or the file");
    }
    const char* data = all.data_as<char>() + begin;
    Tensor tensor;
    if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(dtype.bytes()) != 0) {
      tensor = Tensor::empty(shape, dtype);  // copies unaligned data
      std::memcpy(tensor.data(), data, static_cast<size_t>(*bytes));
    } else {
      tensor = Tensor::view(data, shape, dtype, all.ref());
    }
    tensors_.emplace(key, std::move(tensor));
  }
}

Tensor WeightFile::find(std::string_view key) const {
  auto at = tensors_.find(key);
  return at == tensors_.end() ? Tensor() : at->second;
}

void write_weights(const std::string& path,
                   const std::vector<std::pair<std::string, Tensor>>& tensors) {
  OutputFile out(path);
  write_weights(out, tensors);
  out.commit();
}

void write_weights(OutputFile& out, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  int64_t offset = 0;
  for (const auto& [key, tensor] : tensors) {
    const char* name = nullptr;
    for (const NamedDtype& d : kDtypes) {
      if (tensor.dtype() == d.dtype) name = d.name;
    }
    if (!name) {
      throw Error(ErrorKind::Usage, cat("a weight file can't hold '", key, "'"))
          .found(to_text(tensor));
    }
    std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    header[key] = {
        {"dtype", name}, {"shape", shape}, {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data is aligned
  const uint64_t size = text.size();
  out.write({reinterpret_cast<const char*>(&size), sizeof size});
  out.write(text);
  for (const auto& [_, tensor] : tensors) {
    out.write({tensor.data_as<char>(), static_cast<size_t>(tensor.bytes())});
  }
}

}  // namespace tenon::graph

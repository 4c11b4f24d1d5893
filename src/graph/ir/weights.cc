#include "graph/ir/weights.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "object/counted_bytes.h"
#include "object/file_bytes.h"
#include "support/bulk.h"
#include "support/error.h"
#include "support/input_file.h"
#include "support/poll.h"
#include "support/rounding.h"

namespace tenon::graph {

namespace {

// Those of safetensors, and ours for types that it lacks or, as an F4, packs.
struct NamedDtype {
  const char* name;
  DataType dtype;
};
constexpr NamedDtype kDtypes[] = {
    {"BOOL", boolean},
    {"I8", i8},
    {"I16", i16},
    {"I32", i32},
    {"I64", i64},
    {"U8", u8},
    {"U16", u16},
    {"U32", u32},
    {"U64", u64},
    {"F16", f16},
    {"F32", f32},
    {"F64", f64},
    {"BF16", bf16},
    {"C64", c64},
    {"F8_E4M3", f8e4m3fn},
    {"F8_E5M2", f8e5m2},
    {"F8_E8M0", f8e8m0fnu},
    {"F8_E4M3FNUZ", f8e4m3fnuz},
    {"F8_E5M2FNUZ", f8e5m2fnuz},
    {"F4_E2M1", f4e2m1fn},
    {"I2", i2},
    {"I4", i4},
    {"U2", u2},
    {"U4", u4},
};

// Null for a type that safetensors don't have.
const char* name_of(DataType dtype) {
  for (const NamedDtype& d : kDtypes) {
    if (dtype == d.dtype) return d.name;
  }
  return nullptr;
}

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::Damaged, cat(path, " is not a weight file"))
      .found(what)
      .expected("a .safetensors file, or the .weights file of a program in text");
}

using nlohmann::json;

// The header's characters for the JSON parser: reading them is polled.
class PolledText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  PolledText(const char* at, Ticker* ticker) : at_(at), ticker_(ticker) {}
  reference operator*() const { return *at_; }
  PolledText& operator++() {
    ticker_->tick();
    ++at_;
    return *this;
  }
  bool operator==(const PolledText& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  Ticker* ticker_;
};

// Calls take(key, entry) for each tensor of the header. Only the members of one entry that matter
// are kept at a time, so that a hostile header takes no more memory than its text.
template <class Take>
void for_each_entry(const std::string& path, const std::string& header, Take&& take) {
  constexpr int kInHeader = 1, kInEntry = 2, kInList = 3, kDeepest = 64;  // depths
  std::string key;
  int listed = 0;
  auto filter = [&](int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (depth == 0 && event == Event::array_start) damaged(path, "its header is not a JSON object");
    if (depth > kDeepest) damaged(path, "its header nests too deeply");
    if (event == Event::key && depth == kInHeader) key = parsed.get<std::string>();
    if (depth > 0 && key == "__metadata__") return false;
    switch (event) {
      case Event::key:
        return depth == kInHeader ||
               (depth == kInEntry &&
                (parsed == "dtype" || parsed == "shape" || parsed == "data_offsets"));
      case Event::array_start:
        listed = 0;
        return depth == kInEntry;
      case Event::object_start:
        return depth <= kInHeader;
      case Event::value:
        // One more than a shape may have, which is refused.
        if (depth >= kInList) return ++listed <= kMaxRank + 1;
        break;
      case Event::array_end:
      case Event::object_end:
        break;
    }
    if (depth != kInHeader) return true;
    take(key, parsed);
    return false;
  };
  Ticker ticker;
  const char* text = header.data();
  const json parsed =
      json::parse(PolledText(text, &ticker), PolledText(text + header.size(), &ticker), filter,
                  /*allow_exceptions=*/false);
  if (!parsed.is_object()) damaged(path, "its header is not a JSON object");
}

}  // namespace

WeightFile::WeightFile(const std::string& path) {
  auto file = make<FileBytes>();
  {
    const InputFile in(path);
    file->data = static_cast<const char*>(in.map());
    file->size = in.size();
    file->memory = FileBytes::Memory::Mapped;
  }
  const size_t size = file->size;
  uint64_t header_size = 0;
  if (size < sizeof header_size) damaged(path, cat(size, " bytes"));
  std::memcpy(&header_size, file->data, sizeof header_size);
  if (header_size > size - sizeof header_size) {
    damaged(path, cat("a header of ", header_size, " bytes in ", size));
  }
  // The text, and the table, whose entries take up to twice the memory of theirs.
  const CountedBytes counted(3 * header_size);
  const std::string header(file->data + sizeof header_size, header_size);
  const auto data_size = static_cast<int64_t>(size - sizeof header_size - header_size);
  const Tensor all = Tensor::view(file->data + sizeof header_size + header_size,
                                  std::span(&data_size, 1), u8, file);

  for_each_entry(path, header, [&](const std::string& key, const json& entry) {
    auto bad = [&](const char* what) { damaged(path, cat(tenon::quoted(key), ": ", what)); };
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
      bad("dtype, shape and data_offsets are needed");
    }
    auto natural = [&](const json& j) {
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
    const int64_t begin = natural(entry["data_offsets"][0]),
                  end = natural(entry["data_offsets"][1]);
    auto bytes = byte_count(shape, dtype);
    if (!bytes || begin > end || end > data_size || end - begin != *bytes) {
      bad("its bytes don't fit its shape or the file");
    }
    const char* data = all.data_as<const char>() + begin;
    Tensor tensor;
    if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(dtype.bytes()) != 0) {
      tensor = Tensor::empty(shape, dtype);
      copy_memory(tensor.data(), data, static_cast<size_t>(*bytes));
    } else {
      tensor = Tensor::view(data, shape, dtype, all.ref());
    }
    if (!tensors_.emplace(key, std::move(tensor)).second) bad("it appears twice");
  });
}

bool weight_file_holds(DataType dtype) {
  return name_of(dtype) != nullptr;
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

void write_weights(OutputFile& out, const std::vector<std::pair<std::string, Tensor>>& given) {
  // Those of whole units first, so that each of them is aligned.
  auto tensors = given;
  std::stable_partition(tensors.begin(), tensors.end(), [](const auto& entry) {
    return entry.second.bytes() % kDataAlignment == 0;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  int64_t offset = 0;
  for (const auto& [key, tensor] : tensors) {
    const char* name = name_of(tensor.dtype());
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
  uint64_t size = text.size() + sizeof size;
  size = round_up(size, kDataAlignment) - sizeof size;
  text.resize(size, ' ');  // so that the data is aligned
  out.write({reinterpret_cast<const char*>(&size), sizeof size});
  out.write(text);
  for (const auto& [_, tensor] : tensors) {
    out.write({tensor.data_as<char>(), static_cast<size_t>(tensor.bytes())});
  }
}

}  // namespace tenon::graph

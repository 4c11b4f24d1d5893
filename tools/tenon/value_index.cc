#include "tools/tenon/value_index.h"

#include <cctype>
#include <filesystem>

#include "json/json.h"
#include "support/error.h"
#include "support/output_file.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/numpy/npy.h"
#include "vm/executable/mapped_file.h"

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

constexpr char kIndex[] = "values.json";

std::map<std::string, std::string> read_index(const std::string& path) {
  std::map<std::string, std::string> files;
  const Json json = parse_json(vm::read_whole_file(path)->view(), ErrorKind::Usage, path);
  const auto refuse = [&](const std::string& found) {
    throw Error(ErrorKind::Usage, cat(printable(path), " is not an index of values"))
        .found(found)
        .expected("an object of ONNX names and files in its folder: {\"y\": \"y.npy\"}");
  };
  if (json.kind != Json::Kind::Object) refuse("no object");
  for (const auto& [name, file] : json.object) {
    const bool inside = file.kind == Json::Kind::String &&
                        fs::path(file.string).filename() == fs::path(file.string);
    if (!inside) refuse(cat("no file in its folder for '", printable(name), "'"));
    files[name] = file.string;
  }
  return files;
}

}  // namespace

ValueIndex::ValueIndex(const std::string& path, const std::string& flag)
    : path_(path), store_(path, "value", flag) {
  if (is_npz(path)) return;
  const std::string index = cat(path, "/", kIndex);
  if (fs::exists(index)) files_ = read_index(index);
}

std::optional<Tensor> ValueIndex::read(const std::string& name) const {
  if (files_) {
    const auto file = files_->find(name);
    if (file == files_->end()) return std::nullopt;
    return read_tensor(cat(path_, "/", file->second));
  }
  // Without an index, names that lead out of the folder have no file.
  const fs::path inside = fs::path(name).lexically_normal();
  if (!is_npz(path_) && (inside.is_absolute() || inside.empty() || *inside.begin() == "..")) {
    return std::nullopt;
  }
  return store_.read(name, SIZE_MAX);  // by name only
}

ValueFolder::ValueFolder(std::string path) : path_(std::move(path)) {
  fs::create_directories(path_);
}

void ValueFolder::add(const std::vector<std::string>& names, const std::string& place,
                      const Tensor& value) {
  constexpr size_t kLongest = 200;  // file systems allow 255 bytes
  std::string file = place.substr(0, kLongest);
  for (char& c : file) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  file = cat(count_++, "_", file, ".npy");
  write_npy(cat(path_, "/", file), value);
  for (const std::string& name : names) files_.emplace_back(name, file);
}

void ValueFolder::finish() const {
  JsonWriter out = json_document();
  out.begin_object();
  for (const auto& [name, file] : files_) out.key(name).value(file);
  OutputFile file(cat(path_, "/", kIndex));
  file.write(out.end_object().take() + "\n");
  file.commit();
}

}  // namespace tenon::tool

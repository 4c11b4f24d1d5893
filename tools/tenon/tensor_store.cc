#include "tools/tenon/tensor_store.h"

#include <algorithm>
#include <filesystem>

#include "import/onnx/tensor_file.h"
#include "support/error.h"
#include "support/output_file.h"
#include "tools/tenon/command.h"
#include "tools/tenon/input_stream.h"
#include "tools/tenon/npy.h"
#include "tools/tenon/zip_reader.h"
#include "tools/tenon/zip_writer.h"

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNpy = ".npy", kPb = ".pb", kNpz = ".npz", kNpzArray = ".npz:";

// numpy.load's name of an array: that of the member without .npy.
std::string array_name(const std::string& member) {
  return member.ends_with(kNpy) ? member.substr(0, member.size() - kNpy.size()) : member;
}

std::vector<std::string> array_names(const ZipReader& archive) {
  std::vector<std::string> names;
  for (const ZipMember& member : archive.members()) names.push_back(array_name(member.name));
  return names;
}

Tensor read_array(const ZipReader& archive, const std::string& name) {
  const auto member = std::ranges::find(
      archive.members(), name, [](const ZipMember& some) { return array_name(some.name); });
  if (member == archive.members().end()) {
    const std::vector<std::string> names = array_names(archive);
    Error error(ErrorKind::Usage,
                cat(printable(archive.path()), " has no array '", printable(name), "'"));
    error.expected(names.empty() ? "one of its arrays: it has none" : join_some(names));
    const std::string near = nearest(name, names);
    if (!near.empty()) error.help(cat("did you mean ", archive.path(), ":", near, "?"));
    throw error;
  }
  const std::unique_ptr<ByteSource> content = archive.open(*member);
  return read_npy(*content);
}

// F.npz, whose only array it is.
Tensor read_single_array(const ZipReader& archive) {
  const std::vector<std::string> names = array_names(archive);
  if (names.size() == 1) return read_array(archive, names[0]);
  throw Error(ErrorKind::Usage,
              cat(printable(archive.path()), " has ", counted(names.size(), "array")))
      .expected(names.empty() ? "one"
                              : cat("one, or FILE.npz:NAME with NAME one of ", join_some(names)));
}

// A name such as ONNX's /encoder/Add_output_0 is taken to be relative to the folder.
void check_inside(const std::string& folder, const std::string& name) {
  const fs::path inside = fs::path(name).relative_path().lexically_normal();
  if (!inside.empty() && *inside.begin() != "..") return;
  throw Error(ErrorKind::Usage, cat("'", name, "' leads out of the folder ", folder))
      .help("an untrusted file may have such names; give a file for each value instead");
}

}  // namespace

bool is_npz(const std::string& path) {
  return path.ends_with(kNpz);
}

bool is_tensor_file(const std::string& text) {
  return text.ends_with(kNpy) || text.ends_with(kPb) || is_npz(text) ||
         text.find(kNpzArray) != std::string::npos;
}

Tensor read_tensor(const std::string& path) {
  if (path.ends_with(kNpy) || is_stream(path) || path.starts_with("/dev/")) {
    InputStream in(path);
    return read_npy(in);
  }
  if (path.ends_with(kPb)) return onnx::read_tensor_file(path);
  if (is_npz(path)) return read_single_array(ZipReader(path));
  const size_t array = path.find(kNpzArray);
  if (array != std::string::npos) {
    const size_t colon = array + kNpz.size();
    return read_array(ZipReader(path.substr(0, colon)), path.substr(colon + 1));
  }
  throw Error(ErrorKind::Usage, cat(path, " is not a tensor file"))
      .expected(
          ".npy or .npz (NumPy; F.npz:NAME for one array of several) or .pb (ONNX TensorProto); - "
          "for .npy from standard input; or random, random:LOW..HIGH");
}

std::string file_of_name(const std::string& folder, const std::string& name) {
  check_inside(folder, name);
  return cat(folder, "/", name, kNpy);
}

std::vector<std::string> numbered_files(const std::string& folder, const std::string& name) {
  std::vector<std::string> files;
  for (int i = 0;; ++i) {
    std::string path = cat(folder, "/", name, "_", i, ".pb");
    if (!fs::exists(path)) return files;
    files.push_back(std::move(path));
  }
}

TensorStore::TensorStore(const std::string& path, const std::string& prefix,
                         const std::string& flag)
    : path_(path), prefix_(prefix) {
  if (fs::is_directory(path)) return;
  if (is_npz(path) && fs::exists(path)) {
    const ZipReader archive(path);
    for (const std::string& name : array_names(archive)) in_archive_.insert(cat(path, ":", name));
    return;
  }
  const std::string wanted =
      cat("a folder with ", prefix, "_0.pb, ", prefix,
          "_1.pb, ... or NAME.npy, or a .npz file: one tensor for each ", prefix);
  if (!fs::exists(path)) {
    throw Error(ErrorKind::Usage,
                cat(flag, ": there is no ", is_npz(path) ? "file " : "folder ", path))
        .expected(wanted);
  }
  throw Error(ErrorKind::Usage, cat(flag, ": ", path, " is neither a folder nor a .npz file"))
      .expected(wanted);
}

std::vector<std::string> TensorStore::candidates(const std::string& name, size_t index) const {
  if (is_npz(path_) && !fs::is_directory(path_)) {
    return {cat(path_, ":arr_", index), cat(path_, ":", name)};
  }
  return {cat(path_, "/", prefix_, "_", index, ".pb"), file_of_name(path_, name)};
}

bool TensorStore::holds(const std::string& place) const {
  return in_archive_.contains(place) || (in_archive_.empty() && fs::exists(place));
}

std::optional<std::string> TensorStore::find(const std::string& name, size_t index) const {
  for (const std::string& place : candidates(name, index)) {
    if (holds(place)) return place;
  }
  return std::nullopt;
}

std::string TensorStore::places(const std::string& name, size_t index) const {
  return join(candidates(name, index), " or ");
}

size_t TensorStore::numbered() const {
  size_t count = 0;
  while (holds(candidates("x", count)[0])) ++count;
  return count;
}

void check_tensor_destination(const std::string& path, const std::vector<std::string>& names,
                              const std::string& flag) {
  for (const std::string& name : names) check_inside(path, name);
  if (is_npz(path)) return check_writable(path);
  if (fs::path(path).has_extension() && !fs::is_directory(path)) {
    throw Error(ErrorKind::Usage, cat(flag, ": ", path, " is neither a folder nor a .npz file"))
        .expected("FOLDER, for a NAME.npy each, or FILE.npz");
  }
  check_folder_writable(path);
}

void write_tensors(const std::string& path, const std::vector<std::string>& names,
                   const std::vector<Tensor>& tensors) {
  if (!is_npz(path)) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string file = file_of_name(path, names[i]);
      fs::create_directories(fs::path(file).parent_path());
      write_npy(file, tensors[i]);
    }
    return;
  }
  OutputFile file(path);
  ZipWriter archive(file);
  for (size_t i = 0; i < tensors.size(); ++i) {
    archive.add(cat(names[i], kNpy), {npy_header(path, tensors[i]), npy_data(tensors[i])});
  }
  archive.finish();
  file.commit();
}

}  // namespace tenon::tool

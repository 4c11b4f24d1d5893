#include "tools/tenon/tensor_store.h"

#include <filesystem>
#include <map>

#include "import/onnx/tensor_file.h"
#include "support/error.h"
#include "support/output_file.h"
#include "tools/tenon/command.h"
#include "tools/tenon/numpy/input_stream.h"
#include "tools/tenon/numpy/npy.h"
#include "tools/tenon/numpy/zip_reader.h"
#include "tools/tenon/numpy/zip_writer.h"

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNpy = ".npy", kPb = ".pb", kNpz = ".npz", kNpzArray = ".npz:";

// numpy.load's name of an array: that of the member without .npy.
std::string array_name(const std::string& member) {
  return member.ends_with(kNpy) ? member.substr(0, member.size() - kNpy.size()) : member;
}

// A name such as ONNX's /encoder/Add_output_0 is taken to be relative to the folder.
void check_inside(const std::string& folder, const std::string& name) {
  const fs::path inside = fs::path(name).relative_path().lexically_normal();
  if (!inside.empty() && *inside.begin() != "..") return;
  throw Error(ErrorKind::Usage, cat("'", name, "' leads out of the folder ", folder))
      .help("an untrusted file may have such names; give a file for each value instead");
}

}  // namespace

// Its directory is read once, however many of its arrays are.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path) : archive_(path) {
    for (const ZipMember& member : archive_.members()) {
      arrays_.emplace(array_name(member.name), &member);
    }
  }

  bool holds(const std::string& name) const { return arrays_.contains(name); }

  Tensor read(const std::string& name) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) refuse(name);
    const std::unique_ptr<ByteSource> content = archive_.open(*found->second);
    return read_npy(*content);
  }

  // That of F.npz, whose only array it is.
  Tensor read_single() const {
    const std::vector<ZipMember>& members = archive_.members();
    if (members.size() == 1) return read(array_name(members[0].name));
    throw Error(ErrorKind::Usage,
                cat(printable(archive_.path()), " has ", counted(members.size(), "array")))
        .expected(members.empty()
                      ? "one"
                      : cat("one, or FILE.npz:NAME with NAME one of ", join_some(names())));
  }

  // In the archive's order.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const ZipMember& member : archive_.members()) names.push_back(array_name(member.name));
    return names;
  }

 private:
  [[noreturn]] void refuse(const std::string& name) const {
    const std::vector<std::string> all = names();
    Error error(ErrorKind::Usage,
                cat(printable(archive_.path()), " has no array '", printable(name), "'"));
    error.expected(all.empty() ? "one of its arrays: it has none" : join_some(all));
    const std::string near = nearest(name, all);
    if (!near.empty()) error.help(cat("did you mean ", archive_.path(), ":", near, "?"));
    throw error;
  }

  ZipReader archive_;
  std::map<std::string, const ZipMember*> arrays_;  // by name; of two, the first
};

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
  if (is_npz(path)) return NpzFile(path).read_single();
  const size_t array = path.find(kNpzArray);
  if (array != std::string::npos) {
    const size_t colon = array + kNpz.size();
    return NpzFile(path.substr(0, colon)).read(path.substr(colon + 1));
  }
  throw Error(ErrorKind::Usage, cat(path, " is not a tensor file"))
      .expected(
          ".npy or .npz (NumPy; F.npz:NAME for one array of several) or .pb (ONNX TensorProto); - "
          "for .npy from standard input; or random, random:LOW..HIGH; or a number, which fills the "
          "tensor; or text such as tensor[2; f32]{1, 2}");
}

namespace {

// The type as ONNX's.
onnx::ValueType onnx_type(const vm::SignatureType& type) {
  using Kind = vm::SignatureType::Kind;
  onnx::ValueType out;
  out.kind = onnx::ValueType::kTensor;
  const bool optional = type.kind == Kind::Adt && type.name == "option";
  if (type.kind != Kind::Array && !optional) return out;
  out.kind = optional ? onnx::ValueType::kOptional : onnx::ValueType::kSequence;
  out.held = std::make_shared<onnx::ValueType>(onnx_type(type.parts[0]));
  return out;
}

}  // namespace

bool is_value_file(const std::string& text, const vm::SignatureType& type) {
  return text.ends_with(kPb) && onnx_type(type).held;
}

Any read_value(const std::string& path, const vm::SignatureType& type) {
  if (is_value_file(path, type)) return onnx::read_value_file(path, onnx_type(type));
  return read_tensor(path);
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
    archive_ = std::make_shared<const NpzFile>(path);
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

TensorStore::Candidates TensorStore::candidates(const std::string& name, size_t index) const {
  if (archive_) return {cat("arr_", index), name};
  return {cat(path_, "/", prefix_, "_", index, ".pb"), file_of_name(path_, name)};
}

bool TensorStore::exists(const std::string& candidate) const {
  return archive_ ? archive_->holds(candidate) : fs::exists(candidate);
}

std::optional<std::string> TensorStore::find(const std::string& name, size_t index) const {
  Candidates places = candidates(name, index);
  if (exists(places.by_position)) return std::move(places.by_position);
  if (exists(places.by_name)) return std::move(places.by_name);
  return std::nullopt;
}

bool TensorStore::holds(const std::string& name, size_t index) const {
  return find(name, index).has_value();
}

std::optional<Tensor> TensorStore::read(const std::string& name, size_t index) const {
  const std::optional<std::string> place = find(name, index);
  if (!place) return std::nullopt;
  return archive_ ? archive_->read(*place) : read_tensor(*place);
}

std::optional<Any> TensorStore::read_value(const std::string& name, size_t index,
                                           const vm::SignatureType& type) const {
  const std::optional<std::string> place = find(name, index);
  if (!place) return std::nullopt;
  return archive_ ? Any(archive_->read(*place)) : tool::read_value(*place, type);
}

std::string TensorStore::places(const std::string& name, size_t index) const {
  const Candidates places = candidates(name, index);
  const std::string folder = archive_ ? cat(path_, ":") : "";
  return cat(folder, places.by_position, " or ", folder, places.by_name);
}

std::string TensorStore::contents() const {
  if (!archive_) return "";
  const std::vector<std::string> names = archive_->names();
  return cat(printable(path_), " has ", names.empty() ? "no arrays" : join_some(names));
}

size_t TensorStore::numbered() const {
  size_t count = 0;
  while (exists(candidates("x", count).by_position)) ++count;
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
    const NpyBytes bytes(path, tensors[i]);
    archive.add(cat(names[i], kNpy), {bytes.header(), bytes.data()});
  }
  archive.finish();
  file.commit();
}

}  // namespace tenon::tool

// Tensors by name, in a folder of files or in an archive: --inputs, --expect, --outputs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "object/any.h"
#include "object/tensor.h"
#include "vm/isa/signature.h"

namespace tenon::tool {

// Whether a path names a .npz archive.
bool is_npz(const std::string& path);

class NpzFile;  // a .npz archive, whose directory was read

// A folder that holds NAME.npy, or input_0.pb, input_1.pb, ... by position; or a .npz archive that
// holds NAME, or arr_0, arr_1, ... by position, as numpy.savez names arrays without a name.
class TensorStore {
 public:
  // `prefix` is that of the numbered files: "input" or "output". `flag` names the option in errors,
  // which are Usage if nothing is there.
  TensorStore(const std::string& path, const std::string& prefix, const std::string& flag);

  // Whether it holds the tensor `name`, the one at position `index`, and that tensor, if it does.
  // Both throw Usage for a name that leads out of the folder, since names come from the program's
  // author.
  bool holds(const std::string& name, size_t index) const;
  std::optional<Tensor> read(const std::string& name, size_t index) const;
  // The same for a value of a type, which may be in a .pb file.
  std::optional<Any> read_value(const std::string& name, size_t index,
                                const vm::SignatureType& type) const;
  // The places where it looks, for errors: "d/input_0.pb or d/x.npy".
  std::string places(const std::string& name, size_t index) const;
  // The arrays of an .npz file, for errors: "F.npz has a, b"; empty for a folder.
  std::string contents() const;
  // How many tensors it has by position.
  size_t numbered() const;

 private:
  // What may hold a tensor: files, or names of arrays.
  struct Candidates {
    std::string by_position, by_name;
  };
  Candidates candidates(const std::string& name, size_t index) const;
  bool exists(const std::string& candidate) const;
  std::optional<std::string> find(const std::string& name, size_t index) const;

  std::string path_, prefix_;
  std::shared_ptr<const NpzFile> archive_;  // null for a folder
};

// A tensor file: .npy, .pb, .npz if it has one array, F.npz:NAME; a pipe, or "-" for standard
// input, as .npy.
Tensor read_tensor(const std::string& path);
// The same for a value of a type: a .pb file holds a sequence or an optional value of ONNX where
// the type is an array or an option, otherwise a tensor.
Any read_value(const std::string& path, const vm::SignatureType& type);
// Whether a .pb file can hold a value of the type and the text is the name of one.
bool is_value_file(const std::string& text, const vm::SignatureType& type);
// Whether a text is the name of a tensor file.
bool is_tensor_file(const std::string& text);

// FOLDER/NAME.npy. Throws Usage for a name that leads out of the folder.
std::string file_of_name(const std::string& folder, const std::string& name);

// The files NAME_0.pb, NAME_1.pb, ... of a folder, in order.
std::vector<std::string> numbered_files(const std::string& folder, const std::string& name);

// Refuses a destination that `write_tensors` could not write, before the work is done.
void check_tensor_destination(const std::string& path, const std::vector<std::string>& names,
                              const std::string& flag);
// Writes tensors into a .npz archive, or into a folder, which is created: NAME.npy each.
void write_tensors(const std::string& path, const std::vector<std::string>& names,
                   const std::vector<Tensor>& tensors);

}  // namespace tenon::tool

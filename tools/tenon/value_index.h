// Values by ONNX name in files: --save-values and --expect-values. A folder's values.json maps the
// names, which may be no names of files, to its files: {"/conv1/output": "0_conv1.npy", ...}.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "object/tensor.h"
#include "tools/tenon/tensor_store.h"

namespace tenon::tool {

class ValueIndex {
 public:
  // A .npz archive, or a folder with values.json or NAME.npy. `flag` names the option in errors.
  ValueIndex(const std::string& path, const std::string& flag);
  // The value; nullopt if nothing holds it.
  std::optional<Tensor> read(const std::string& name) const;

 private:
  std::string path_;
  TensorStore store_;
  std::optional<std::map<std::string, std::string>> files_;  // of values.json
};

// A folder that values are written to.
class ValueFolder {
 public:
  explicit ValueFolder(std::string path);  // is created
  void add(const std::string& name, const Tensor& value) { add({name}, name, value); }
  // A value with any number of names, or none. `place` is part of the file's name.
  void add(const std::vector<std::string>& names, const std::string& place, const Tensor& value);
  void finish() const;  // writes values.json

 private:
  std::string path_;
  size_t count_ = 0;
  std::vector<std::pair<std::string, std::string>> files_;  // by name, in order
};

}  // namespace tenon::tool

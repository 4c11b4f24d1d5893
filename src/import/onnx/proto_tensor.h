// Converts TensorProto to Tensor. Private to the files that use protobuf.
#pragma once

#include <map>
#include <string>

#include "import/onnx/model.h"
#include "onnx.pb.h"

namespace tenon::onnx {

// A model's external data files, each mapped once.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}
  // Throws Usage for a path that leaves the folder or a file that can't be read.
  const Ref<StorageObj>& open(const std::string& location, const std::string& tensor);

 private:
  std::string directory_;
  std::map<std::string, Ref<StorageObj>> files_;
};

// Moves the elements out of `proto`, without copying them if they have a tensor's layout. `what`
// names the tensor in errors; a null `external` refuses external data. Throws Damaged if sizes
// disagree. For an element type that isn't implemented, returns a TensorData with a `problem`.
TensorData take_tensor(schema::TensorProto& proto, const std::string& what,
                       ExternalFiles* external);

}  // namespace tenon::onnx

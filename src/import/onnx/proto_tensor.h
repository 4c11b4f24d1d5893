// TensorProto to Tensor. Private to the files that see protobuf.
#pragma once

#include <map>
#include <string>

#include "import/onnx/model.h"
#include "onnx.pb.h"

namespace tenon::onnx {

// The files beside a model that hold its data, each mapped once.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}
  // Throws Usage for a path that leaves the folder or a file that can't be read.
  const Ref<StorageObj>& open(const std::string& location, const std::string& tensor);

 private:
  std::string directory_;
  std::map<std::string, Ref<StorageObj>> files_;
};

// Takes the elements out of `proto` without copying them where they lie as a tensor wants them.
// `what` names the tensor in errors; `external` null refuses external data. Throws Damaged where
// sizes disagree. An element type without implementation gives a TensorData with a `problem`.
TensorData take_tensor(schema::TensorProto& proto, const std::string& what,
                       ExternalFiles* external);

}  // namespace tenon::onnx

// Files mapped read-only: models and their external data.
#pragma once

#include <cstdint>
#include <string>

#include "object/tensor.h"

namespace tenon::onnx {

// Maps the whole file as read-only storage, which is unmapped when its last tensor dies. Throws
// what InputFile throws (support/input_file.h).
Ref<StorageObj> map_file(const std::string& path);

// The path of an external data file of a model in `directory`. Throws Usage for anything that would
// leave that folder: an absolute path, "..", a symbolic link to the outside.
std::string resolve_external(const std::string& directory, const std::string& location,
                             const std::string& tensor);

}  // namespace tenon::onnx

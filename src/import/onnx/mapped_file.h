// Files mapped read-only: models and their external data.
#pragma once

#include <cstdint>
#include <string>

#include "object/tensor.h"

namespace tenon::onnx {

// The whole file as read-only storage that unmaps itself when the last tensor over it dies. An
// empty file gives empty storage. Throws Usage when it can't be read or is no regular file (`name`
// is how the error calls it).
Ref<StorageObj> map_file(const std::string& path, const std::string& name);

// The path of an external data file beside the model in `directory`. Refuses with Usage whatever
// would leave that folder: an absolute path, "..", a symbolic link that leads out of it.
std::string resolve_external(const std::string& directory, const std::string& location,
                             const std::string& tensor);

}  // namespace tenon::onnx

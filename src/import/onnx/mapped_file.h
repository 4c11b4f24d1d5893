// Files mapped read-only: models and their external data.
#pragma once

#include <cstdint>
#include <string>

#include "object/tensor.h"

namespace tenon::onnx {

// Maps the whole file as read-only storage, which is unmapped when its last tensor dies. Throws
// what InputFile throws (support/input_file.h).
Ref<StorageObj> map_file(const std::string& path);

}  // namespace tenon::onnx

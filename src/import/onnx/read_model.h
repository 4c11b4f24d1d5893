// Reads .onnx files: converts protobuf bytes to a Model.
#pragma once

#include <string>
#include <string_view>

#include "import/onnx/model.h"

namespace tenon::onnx {

// Parses the file and maps external data from its folder. Throws Usage if a file can't be read or
// its path is refused, Damaged if the bytes are not a model, Unsupported for IR versions later than
// kNewestIrVersion.
Model read_model(const std::string& path);

// The same from memory. `name` is the model's name in errors. External data is looked up in
// `directory`, or refused if that is empty.
Model parse_model(std::string_view bytes, const std::string& name,
                  const std::string& directory = "");

// Whether the first byte is the tag of a field of a ModelProto.
bool begins_like_model(std::string_view bytes);

inline constexpr int64_t kNewestIrVersion = 14;
// How deep messages (graphs in attributes) may nest.
inline constexpr int kMaxMessageDepth = 100;

}  // namespace tenon::onnx

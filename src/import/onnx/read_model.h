// Reads .onnx files: protobuf bytes to Model.
#pragma once

#include <string>
#include <string_view>

#include "import/onnx/model.h"

namespace tenon::onnx {

// Parses the file, mapping external data from its folder. Throws Usage when a file can't be read or
// its path is refused, Damaged when the bytes are no model, Unsupported when it is of an IR version
// later than kNewestIrVersion.
Model read_model(const std::string& path);

// The same from memory: `name` is the model's name in errors, external data is looked up in
// `directory`, or refused when that is empty.
Model parse_model(std::string_view bytes, const std::string& name,
                  const std::string& directory = "");

// Whether the first byte is the tag of a field of a ModelProto.
bool begins_like_model(std::string_view bytes);

inline constexpr int64_t kNewestIrVersion = 14;
// Messages (graphs in attributes) nest up to this depth.
inline constexpr int kMaxMessageDepth = 100;

}  // namespace tenon::onnx

// How much memory a model will take once protobuf has parsed it. protobuf itself accepts no limit,
// and two bytes of a file can become a message of two hundred.
#pragma once

#include <cstddef>
#include <string_view>

namespace tenon::onnx {

// An upper estimate in bytes for a ModelProto of these bytes, which may be damaged. It reads the
// tags of all messages, once, and polls.
size_t message_memory(std::string_view model);

}  // namespace tenon::onnx

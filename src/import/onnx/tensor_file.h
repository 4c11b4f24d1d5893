// TensorProto files: the stored inputs and outputs of ONNX's test cases.
#pragma once

#include <string>
#include <string_view>

#include "object/tensor.h"

namespace tenon::onnx {

// The tensor in `bytes`, a serialized TensorProto without external data. `name` is the file's name
// in errors. Throws Damaged if the bytes are not a TensorProto, Unsupported for other element
// types, sequences and optional values.
Tensor decode_tensor(std::string_view bytes, std::string_view name);

// A serialized TensorProto with raw data. `tensor` is compact and on the CPU.
std::string encode_tensor(const Tensor& tensor, std::string_view tensor_name = "");

// Decodes the tensor in a file. Throws Usage if the file can't be read.
Tensor read_tensor_file(const std::string& path);

}  // namespace tenon::onnx

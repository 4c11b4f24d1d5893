// Files of serialized values: the stored inputs and outputs of ONNX's test cases.
#pragma once

#include <string>
#include <string_view>

#include "import/onnx/model.h"
#include "object/any.h"
#include "object/tensor.h"

namespace tenon::onnx {

// The tensor in `bytes`, a serialized TensorProto without external data. `name` is the file's name
// in errors. Throws Damaged if the bytes are not a TensorProto, Usage if they are a sequence or an
// optional value, Unsupported for other element types.
Tensor decode_tensor(std::string_view bytes, std::string_view name);

// The value of that type in `bytes`, a serialized TensorProto, SequenceProto or OptionalProto: a
// Tensor, an Array or a cell of option[T]. Of the type, only the kinds count.
Any decode_value(std::string_view bytes, std::string_view name, const ValueType& type);

// A serialized TensorProto with raw data. `tensor` is compact and on the CPU.
std::string encode_tensor(const Tensor& tensor, std::string_view tensor_name = "");

// Decodes the tensor in a file. Throws Usage if the file can't be read.
Tensor read_tensor_file(const std::string& path);
Any read_value_file(const std::string& path, const ValueType& type);

}  // namespace tenon::onnx

// The attributes shared by convolution and pooling: kernel, strides, dilations, padding.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

struct Window {
  Ints kernel, strides, dilations;
  Dims pads;  // all begins, then all ends
  size_t rank() const { return kernel.size(); }
  graph::Attrs attrs() const;  // strides, dilations, pads
};

// Reads strides, dilations, pads and auto_pad. `spatial` are the input's spatial sizes. SAME pads
// such that the result has ceil(size / stride) elements.
Window read_window(NodeContext& cx, const Ints& kernel, const Dims& spatial);

// The sizes of `operand`'s axes from `first` on; refuses the node if they are not constant.
Ints constant_sizes(NodeContext& cx, const Operand& operand, size_t first, const char* what);

}  // namespace tenon::onnx

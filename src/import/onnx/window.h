// The attributes shared by convolution and pooling: kernel, strides, dilations, padding.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

struct Window {
  Dims kernel;
  Ints strides, dilations;
  Dims pads;                   // all begins, then all ends
  graph::Attrs attrs() const;  // strides, dilations, pads
};

// Reads strides, dilations, pads and auto_pad. `spatial` are the input's spatial sizes. SAME pads
// such that the result has ceil(size / stride) elements.
Window read_window(NodeContext& cx, const Dims& kernel, const Dims& spatial);

// The kernel of a pool: kernel_shape.
Dims pool_kernel(NodeContext& cx);
// The kernel of a convolution with weights `w` [M, C, ...], which kernel_shape may state again.
Dims conv_kernel(NodeContext& cx, const Operand& w);

// The sizes of `operand`'s axes from `first` on; refuses the node if they are not constant.
Ints constant_sizes(NodeContext& cx, const Operand& operand, size_t first, const char* what);

}  // namespace tenon::onnx

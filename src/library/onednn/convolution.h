// The arguments of onednn.convolution, as convolution.cc has checked them.
#pragma once

#include "library/signatures/signatures.h"
#include "object/shape.h"
#include "object/tensor.h"

namespace tenon::onednn {

// Layouts and meanings are those of the row in library/signatures. Bias and residual may be null.
struct Convolution {
  const Tensor &x, &weights, &bias, &residual, &out;
  const Shape &strides, &dilations, &pads;
  int64_t groups = 1;
  library::Activation activation = library::Activation::None;
  float alpha = 0, beta = 0;
  bool winograd = false;
};

}  // namespace tenon::onednn

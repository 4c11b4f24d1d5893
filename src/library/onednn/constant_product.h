// Products of matrices with constants, which this folder's own loops read from panels: the linear
// layers of networks and their convolutions of 1 by 1.
#pragma once

#include "library/signatures/signatures.h"
#include "object/tensor.h"

namespace tenon::onednn {

// out[rows, columns] = activation(left[rows, depth] x constant + bias[columns] + residual), all
// compact. The constant's elements are those of a matrix [depth, columns] or, transposed,
// [columns, depth]; bias and residual may be null. `out` may be the residual.
struct ConstantProduct {
  int64_t rows, depth, columns;
  const float* left;
  const Tensor& constant;
  bool transposed;
  const float *bias, *residual;
  library::Activation activation;
  float alpha, beta;
  float* out;
};

// Whether run_constant_product can compute it: on a processor with AVX2, of a constant, with
// columns that fill a vector, and no activation but Relu and Clip.
bool fits_constant_product(const ConstantProduct& product);

// Whether that is faster than oneDNN. Depends on the shapes alone, so that results don't depend on
// the number of threads.
bool is_fast_constant_product(const ConstantProduct& product);

void run_constant_product(const ConstantProduct& product);

}  // namespace tenon::onednn

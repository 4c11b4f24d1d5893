// The oracle of this folder's tests: runs computes and kernels over tensors, one element at a time,
// with exactly the semantics of scalar.h. Slow.
//
// Scratch is initialised with a pattern, parallel loops run backwards, every access is checked
// against its buffer, and a kernel that may run in place runs so, too, so that wrong schedules are
// detected.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "loop/kernel.h"
#include "object/tensor.h"

namespace tenon::loop {

// The values of symbols, in addition to those that an input's dimension binds.
using Symbols = std::map<std::string, int64_t, std::less<>>;

// Returns the outputs as new CPU tensors. Inputs are compact CPU tensors. Usage errors if they
// don't have the buffers' dtypes and shapes, or if a symbol of an output's shape is unknown;
// Runtime errors for an index out of range or an integer division by zero, which would stop the
// kernel; Internal errors for an access outside a buffer, and for other values in place.
std::vector<Tensor> evaluate(const Compute& compute, const std::vector<Tensor>& inputs,
                             const Symbols& symbols = {});
std::vector<Tensor> evaluate(const Kernel& kernel, const std::vector<Tensor>& inputs,
                             const Symbols& symbols = {});

}  // namespace tenon::loop

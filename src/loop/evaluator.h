// The oracle of this room's tests: runs computes and kernels over tensors by walking them, one
// element at a time, with exactly the semantics of scalar.h. Slow.
//
// Scratch starts filled with a pattern, parallel loops run backwards, and every access is checked
// against its buffer, so that a wrong schedule shows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "loop/kernel.h"
#include "object/tensor.h"

namespace tenon::loop {

// What symbols are worth beyond those that an input's dimension binds alone.
using Symbols = std::map<std::string, int64_t, std::less<>>;

// The outputs, new tensors on the CPU. Inputs are compact CPU tensors that fit the buffers' dtypes
// and shapes: Error (Usage) if not, or if a symbol of an output's shape is unknown. Error (Runtime)
// for an index out of range or an integer division by zero, as the kernel would stop; Error
// (Internal) for an access outside a buffer.
std::vector<Tensor> evaluate(const Compute& compute, const std::vector<Tensor>& inputs,
                             const Symbols& symbols = {});
std::vector<Tensor> evaluate(const Kernel& kernel, const std::vector<Tensor>& inputs,
                             const Symbols& symbols = {});

}  // namespace tenon::loop

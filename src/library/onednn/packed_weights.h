// Weights in the layouts that primitives and kernels require.
#pragma once

#include <functional>
#include <memory>

#include <oneapi/dnnl/dnnl.hpp>

#include "object/tensor.h"

namespace tenon::onednn {

// The elements of `weights` from byte `offset` on that `from` describes, in the layout `to`. Those
// of a constant are packed once and kept until forget_unused() finds that it is gone. The returned
// memory owns its buffer. Thread-safe.
std::shared_ptr<const dnnl::memory> packed_weights(const Tensor& weights, int64_t offset,
                                                   const dnnl::memory::desc& from,
                                                   const dnnl::memory::desc& to);
// `count` floats that `transform` makes of a constant's elements, kept in the same way. `form`
// tells the forms of one constant apart: an address that lives as long as the process.
std::shared_ptr<const float> transformed_weights(const Tensor& constant, const void* form,
                                                 size_t count,
                                                 const std::function<void(float* to)>& transform);
// Frees weights that were packed from constants that no longer exist.
void forget_unused();

int64_t packing_count();  // how often weights have been packed
int64_t packed_count();   // how many packed constants are kept

// Allocates memory aligned to 64 bytes. Throws Runtime if there is none.
std::shared_ptr<void> allocate(size_t bytes);

}  // namespace tenon::onednn

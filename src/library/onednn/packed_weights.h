// Weights in the form that a primitive asks for.
#pragma once

#include <memory>

#include <oneapi/dnnl/dnnl.hpp>

#include "object/tensor.h"

namespace tenon::onednn {

// `weights`, whose memory is described by `from`, in the form `to`; packed once for a constant, and
// kept until forget_unused() finds it gone. What is returned owns its memory. Any thread.
std::shared_ptr<const dnnl::memory> packed_weights(const Tensor& weights,
                                                   const dnnl::memory::desc& from,
                                                   const dnnl::memory::desc& to);
// Lets go of what was packed from constants that no longer exist.
void forget_unused();

int64_t packing_count();  // how often weights have been packed
int64_t packed_count();   // how many packed constants are kept

// Memory of 64-byte alignment; a Runtime error when there is none.
std::shared_ptr<void> allocate(size_t bytes);

}  // namespace tenon::onednn

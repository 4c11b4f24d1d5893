// Advice to the system about constants in a mapped file; about other tensors, nothing happens.
#pragma once

#include "object/tensor.h"

namespace tenon::onednn {

// The elements are read soon: maps their pages in one step.
void map_pages(const Tensor& constant);
// They were read for the last time, probably: takes their pages from the process's memory.
void release_pages(const Tensor& constant);

}  // namespace tenon::onednn

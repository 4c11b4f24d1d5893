// The inner loops of this folder, for each kind of processor.
#pragma once

#include <span>

#include "library/onednn/attention_kernels.h"
#include "library/onednn/product_kernels.h"
#include "library/onednn/winograd_kernels.h"

namespace tenon::onednn {

struct KernelSet {
  // For tiles of 4 and of 2. Empty in the baseline, which computes convolutions directly.
  std::span<const WinogradKernels> winograd = {};
  AttentionKernels attention;
  ProductKernels product;
  bool wins_over_onednn;  // in large products with constants
};

#define TENON_KERNEL_SET(name, runs) extern const KernelSet k##name##Kernels;
#include "library/onednn/kernel_sets.def"
#undef TENON_KERNEL_SET

// The sets that this processor can run, the fastest first; at least one.
std::span<const KernelSet* const> kernel_sets();
// The fastest.
const KernelSet& kernel_set();

}  // namespace tenon::onednn

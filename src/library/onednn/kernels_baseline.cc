// For processors without the vectors of the other sources.
#include "library/onednn/attention_loops.h"
#include "library/onednn/kernel_sets.h"

namespace tenon::onednn {

constinit const KernelSet kBaselineKernels = {.attention = AttentionLoops<4, 6, 2>::kernels(),
                                              .product = VectorProduct<4, 6, 2>::kKernels,
                                              .wins_over_onednn = false};

}  // namespace tenon::onednn

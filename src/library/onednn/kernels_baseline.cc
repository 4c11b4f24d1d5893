// For processors without the vectors of the other sources.
#include "library/onednn/attention_loops.h"
#include "library/onednn/kernel_sets.h"

namespace tenon::onednn {

constinit const KernelSet kBaselineKernels = {
    {}, AttentionLoops<4, 6, 2>::kernels(), VectorProduct<4, 6, 2>::kernels()};

}  // namespace tenon::onednn

// For processors without the vectors of the other sources.
#include "library/onednn/attention_loops.h"

namespace tenon::onednn {

constinit const AttentionKernels kBaselineAttentionKernels = AttentionLoops<4, 6, 2>::kernels();

}  // namespace tenon::onednn

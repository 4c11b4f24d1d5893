// layer.cmake compiles this file for AVX-512: nothing else may be in it.
#include "library/onednn/attention_loops.h"

#ifdef __x86_64__
namespace tenon::onednn {

constinit const AttentionKernels kAvx512AttentionKernels = AttentionLoops<16, 6, 4>::kernels();

}  // namespace tenon::onednn
#endif

// layer.cmake compiles this file for AVX2 and FMA: nothing else may be in it.
#include "library/onednn/attention_loops.h"

#ifdef __x86_64__
namespace tenon::onednn {

constinit const AttentionKernels kAvx2AttentionKernels = AttentionLoops<8, 6, 2>::kernels();

}  // namespace tenon::onednn
#endif

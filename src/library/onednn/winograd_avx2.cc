// layer.cmake compiles this file for AVX2 and FMA: nothing else may be in it.
#include "library/onednn/winograd_loops.h"

#ifdef __x86_64__
namespace tenon::onednn {

// 12 of 16 registers hold sums, 2 a row of the weights.
using Avx2Loops = WinogradLoops<8, 6, 2>;
constinit const WinogradKernels kAvx2WinogradKernels[2] = {Avx2Loops::kernels<4>(),
                                                           Avx2Loops::kernels<2>()};

}  // namespace tenon::onednn
#endif

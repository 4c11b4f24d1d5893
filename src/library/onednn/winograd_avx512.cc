// layer.cmake compiles this file for AVX-512: nothing else may be in it.
#include "library/onednn/winograd_loops.h"

#ifdef __x86_64__
namespace tenon::onednn {

// 24 of 32 registers hold sums, 4 a row of the weights.
using Avx512Loops = WinogradLoops<16, 6, 4>;
constinit const WinogradKernels kAvx512WinogradKernels[2] = {Avx512Loops::kernels<4>(),
                                                             Avx512Loops::kernels<2>()};

}  // namespace tenon::onednn
#endif

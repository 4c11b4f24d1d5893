// layer.cmake compiles this file for AVX2 and FMA: nothing else may be in it.
#include "library/onednn/attention_loops.h"
#include "library/onednn/kernel_sets.h"
#include "library/onednn/winograd_loops.h"

#ifdef __x86_64__
namespace tenon::onednn {

// 12 of 16 registers hold sums, 2 a row of the weights.
static constexpr WinogradKernels kWinograd[] = {WinogradLoops<8, 6, 2>::kernels<4>(),
                                                WinogradLoops<8, 6, 2>::kernels<2>()};
constinit const KernelSet kAvx2Kernels = {.winograd = kWinograd,
                                          .attention = AttentionLoops<8, 6, 2>::kernels(),
                                          .product = VectorProduct<8, 6, 2>::kKernels,
                                          .wins_over_onednn = true};

}  // namespace tenon::onednn
#endif

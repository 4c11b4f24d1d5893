// layer.cmake compiles this file for AVX-512: nothing else may be in it.
#include "library/onednn/attention_loops.h"
#include "library/onednn/kernel_sets.h"
#include "library/onednn/winograd_loops.h"

#ifdef __x86_64__
namespace tenon::onednn {

// 24 of 32 registers hold sums, 4 a row of the weights.
static constexpr WinogradKernels kWinograd[] = {WinogradLoops<16, 6, 4>::kernels<4>(),
                                                WinogradLoops<16, 6, 4>::kernels<2>()};
constinit const KernelSet kAvx512Kernels = {.winograd = kWinograd,
                                            .attention = AttentionLoops<16, 6, 4>::kernels(),
                                            .product = VectorProduct<16, 6, 4>::kKernels,
                                            .wins_over_onednn = true};

}  // namespace tenon::onednn
#endif

// oneDNN's packed functions.
//
//   onednn.convolution(x, weights, bias?, residual?, out, strides, dilations, pads, groups,
//                      activation, alpha, beta)
//     x [N, s..., C], weights [k..., C/groups, M], bias [M], residual and out [N, t..., M]; f32
//   onednn.matmul(a, b, bias?, residual?, out, a_perm, b_perm, activation, alpha, beta)
//     a and b permuted by a_perm and b_perm (shapes of axes), then multiplied as numpy.matmul does
//     with rank >= 2; bias [n]; residual and out of the result's shape; f32
//   activation: see Activation; applied after bias and residual
//   onednn.packing_count(), onednn.packed_count(): how often this process has packed weights (once
//     for each constant and form), and how many packed constants it keeps
//   onednn.forget_unused(): lets go of those whose constants are gone; programs call it at their
//   end
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

enum class OneDnnActivation : int64_t {
  kNone = 0,
  kRelu = 1,
  kClip = 2,  // to [alpha, beta]
  kGeluErf = 3,
  kTanh = 4,
  kSigmoid = 5,
};

// Registers the functions above and `library.onednn`, which programs that use the library call when
// they are loaded: the first one lends oneDNN's threads to parallel loops (device/parallel.h)
// unless a host has lent its own. Safe to call again.
void register_onednn();

std::string onednn_version();

}  // namespace tenon

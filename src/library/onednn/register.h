// oneDNN's packed functions.
//
// `onednn.convolution` and `onednn.matmul` have rows in library/signatures; for its host:
//
//   onednn.packing_count(), onednn.packed_count(): how often this process has packed weights (once
//     for each constant and form), and how many packed constants it keeps
//   onednn.forget_unused(): lets go of those whose constants are gone; programs call it at their
//   end
#pragma once

#include <string>

namespace tenon {

// Registers the functions above and `library.onednn`, which programs that use the library call when
// they are loaded: the first one lends oneDNN's threads to parallel loops (device/parallel.h)
// unless a host has lent its own. Safe to call again.
void register_onednn();

std::string onednn_version();

}  // namespace tenon

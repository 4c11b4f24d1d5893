// oneDNN's packed functions.
//
// `onednn.convolution` and `onednn.matmul` have rows in library/signatures; for its host:
//
//   onednn.packing_count(), onednn.packed_count(): how often this process has packed weights (once
//     for each constant and form), and how many packed constants it keeps
//   onednn.forget_unused(): lets go of those whose constants are gone; called when a program ends
//   onednn.lend_threads(): called when a program is linked: the first time it lends oneDNN's
//   threads
//     to parallel loops (device/parallel.h) unless a host has lent its own
#pragma once

#include <string>

namespace tenon {

// Registers the functions above.
void register_onednn_functions();
// Defines the library "tenon_onednn" with them, where it is linked in. Safe to call again.
void register_onednn();

std::string onednn_version();

}  // namespace tenon

// oneDNN's packed functions.
//
// `onednn.convolution`, `onednn.matmul` and `onednn.attention` have rows in library/signatures. For
// the host, there are:
//
//   onednn.packing_count()  how often this process has packed weights: once per constant and layout
//   onednn.packed_count()   how many packed constants it keeps
//   onednn.forget_unused()  frees those whose constants are gone; called when a program ends
//   onednn.lend_threads()   called when a program is linked; the first call lets parallel loops
//                           (device/parallel.h) use oneDNN's threads, unless a host has lent its
//                           own
#pragma once

#include <string>

namespace tenon {

// Registers the functions above.
void register_onednn_functions();
// Defines the library "tenon_onednn" in a process that links it. May be called repeatedly.
void register_onednn();

std::string onednn_version();

}  // namespace tenon

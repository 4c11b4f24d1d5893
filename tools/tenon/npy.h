// NumPy's .npy format, versions 1 to 3, C order, little-endian: the format of numpy.lib.format.
#pragma once

#include <string>

#include "object/tensor.h"

namespace tenon::tool {

// Throws Error: Usage when the file can't be read or holds a dtype that tensors do not have;
// Damaged when it is no .npy file.
Tensor read_npy(const std::string& path);
void write_npy(const std::string& path, const Tensor& tensor);

// The whole file; Usage with the system's reason when it can't be read.
std::string read_file(const std::string& path);

}  // namespace tenon::tool

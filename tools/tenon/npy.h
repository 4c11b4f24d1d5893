// NumPy's .npy format (numpy.lib.format), versions 1 to 3, C order, little-endian.
#pragma once

#include <string>

#include "object/tensor.h"
#include "tools/tenon/input_stream.h"

namespace tenon::tool {

// Throws Usage if the file can't be read or has an unsupported dtype, Damaged if it is not a .npy
// file.
Tensor read_npy(InputStream& in);
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace tenon::tool

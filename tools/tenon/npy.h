// NumPy's .npy format (numpy.lib.format), versions 1 to 3.
#pragma once

#include <string>

#include "object/tensor.h"
#include "tools/tenon/byte_source.h"

namespace tenon::tool {

// Reads an array in C or Fortran order, of either byte order. Throws Usage if the file can't be
// read or has an unsupported dtype, Damaged if it is not a .npy file.
Tensor read_npy(ByteSource& in);
// Writes one in C order, little-endian.
void write_npy(const std::string& path, const Tensor& tensor);
// What stands before the elements in a file. `path` is for the error about a dtype that NumPy
// doesn't have.
std::string npy_header(const std::string& path, const Tensor& tensor);
// The elements as bytes.
std::string_view npy_data(const Tensor& tensor);

}  // namespace tenon::tool

// NumPy's .npy format (numpy.lib.format), versions 1 to 3.
#pragma once

#include <string>

#include "object/tensor.h"
#include "tools/tenon/numpy/byte_source.h"

namespace tenon::tool {

// Reads an array in C or Fortran order, of either byte order. Throws Usage if the file can't be
// read or has an unsupported dtype, Damaged if it is not a .npy file.
Tensor read_npy(ByteSource& in);
// Writes one in C order, little-endian.
void write_npy(const std::string& path, const Tensor& tensor);

// A file's bytes: what stands before the elements, and these, which are the tensor's own unless
// they are strings.
class NpyBytes {
 public:
  // `path` is for the error about a dtype that NumPy doesn't have.
  NpyBytes(const std::string& path, const Tensor& tensor);
  const std::string& header() const { return header_; }
  std::string_view data() const {
    return tensor_.dtype() == string_elements ? std::string_view(strings_) : numbers();
  }

 private:
  std::string_view numbers() const {
    return {static_cast<const char*>(tensor_.data()), static_cast<size_t>(tensor_.bytes())};
  }

  Tensor tensor_;
  std::string strings_, header_;
};

}  // namespace tenon::tool

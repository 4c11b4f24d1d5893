// Weight files hold the large constants of a textual module, in the safetensors format.
//
//   8 bytes   n, little-endian
//   n bytes   JSON: {"key": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//   the rest  the tensors, in order, without gaps
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "object/tensor.h"
#include "support/output_file.h"

namespace tenon::graph {

// Whether tensors of this type can be written to a weight file.
bool weight_file_holds(DataType dtype);

class WeightFile {
 public:
  // Maps the file, whose tensors share the mapping (InputFile::map); those that lie unaligned for
  // their elements are copied. Reading the header is polled, and it counts for the memory of this
  // thread's work. Throws what InputFile throws (support/input_file.h), and Damaged if it is not a
  // weight file.
  explicit WeightFile(const std::string& path);
  // Null if there is no such key.
  Tensor find(std::string_view key) const;
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }

 private:
  std::map<std::string, Tensor, std::less<>> tensors_;
};

// Throws Usage if the file can't be written or the format has no name for an element type.
void write_weights(const std::string& path,
                   const std::vector<std::pair<std::string, Tensor>>& tensors);
// The same into a file that the caller commits.
void write_weights(OutputFile& out, const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tenon::graph

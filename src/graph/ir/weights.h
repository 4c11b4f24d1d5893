// Weight files: the constants of a module beside its text, in the safetensors format.
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

namespace tenon::graph {

class WeightFile {
 public:
  // Reads the whole file into memory that its tensors share. Throws Error: Usage when it can't be
  // opened, Damaged for what is no weight file.
  explicit WeightFile(const std::string& path);
  // Null: there is none of that key.
  Tensor find(std::string_view key) const;

 private:
  std::map<std::string, Tensor, std::less<>> tensors_;
};

// Throws Error (Usage) when the file can't be written, and for an element type without a name in
// the format.
void write_weights(const std::string& path,
                   const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tenon::graph

// Tensors of strings on the command line.
#pragma once

#include <string_view>
#include <vector>

#include "object/tensor.h"

namespace tenon::tool {

// Whether the text is a list or string of JSON, which parse_string_tensor reads.
bool is_string_list(std::string_view text);
// The tensor of '["a", "b"]', '[["a"], ["b"]]' or '"a"': JSON, whose nested lists are the axes.
// Throws Usage for any other text.
Tensor parse_string_tensor(std::string_view text);

}  // namespace tenon::tool

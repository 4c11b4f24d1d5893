// Tensors as JSON on the command line.
#pragma once

#include <string_view>

#include "object/tensor.h"

namespace tenon::tool {

// Whether the text is JSON's form of a tensor of that element type: a list or, of strings, also a
// string in quotes. Complex numbers have none.
bool is_json_tensor(std::string_view text, DataType dtype);
// The tensor of '["a", "b"]', '[["a"], ["b"]]' or '"a"', '[[1], [2.5]]' or '[true]': nested lists
// are the axes. Numbers are read exactly, as the type allows. Throws Usage for any other text.
Tensor parse_json_tensor(std::string_view text, DataType dtype);

}  // namespace tenon::tool

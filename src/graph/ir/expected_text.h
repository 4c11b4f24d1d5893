// What errors expect, as text.
#pragma once

#include <string>
#include <vector>

#include "object/dtype.h"

namespace tenon::graph {

// "Leaf, Node", with "..." in place of names after the first ten; "none" for no names.
std::string some_of(const std::vector<std::string>& names);
// The integers of an element type: "-128 to 127"; "true or false" for booleans.
std::string range_text(DataType dtype);

}  // namespace tenon::graph

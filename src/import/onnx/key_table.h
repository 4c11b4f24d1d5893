// Tables that give a value for each of their keys.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

using Numbers = std::vector<double>;

// A list of integers, floats or strings, from one of several attributes.
struct List {
  DataType dtype = i64;
  Ints ints;                       // of an integer type
  Numbers floats;                  // of a float type
  std::vector<std::string> texts;  // of strings

  size_t size() const {
    return dtype == string_elements ? texts.size() : dtype.is_float() ? floats.size() : ints.size();
  }
  // Those at these places, as a list.
  Operand constant(NodeContext& cx, const std::vector<size_t>& places) const;
};

// What `keys` map to `values` for each element of x, which has the keys' type; `otherwise`, of rank
// 0, for elements that are not a key, and for NaN.
Operand encoded(NodeContext& cx, const Operand& x, const List& keys, const List& values,
                const Operand& otherwise);

}  // namespace tenon::onnx

// A list of strings as the table of keys that the operator text_find is given.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

struct TextKeys {
  explicit TextKeys(const std::vector<std::string>& texts);

  // The different strings, sorted here so that text_find needn't on each call.
  std::vector<std::string> keys;
  Ints places;  // of each given string, among them
};

}  // namespace tenon::onnx

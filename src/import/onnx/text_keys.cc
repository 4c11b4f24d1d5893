#include "import/onnx/text_keys.h"

#include <algorithm>

namespace tenon::onnx {

TextKeys::TextKeys(const std::vector<std::string>& texts) : keys(texts) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const std::string& text : texts) {
    places.push_back(std::lower_bound(keys.begin(), keys.end(), text) - keys.begin());
  }
}

}  // namespace tenon::onnx

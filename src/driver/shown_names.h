// Names as graphs, pictures and recordings have them: cut, since a file's names may be long and any
// number of its instructions may share them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::driver {

// What a node or call has of a name, in bytes, and of a list of names.
inline constexpr size_t kLongestName = 250, kMostNames = 16;

// The text, or a prefix that ends between characters of UTF-8 and an ellipsis.
std::string shortened(std::string_view text, size_t longest);

inline std::string shown_name(std::string_view name) {
  return shortened(name, kLongestName);
}
// The first names; of too many, "3 more" is the last.
std::vector<std::string> shown_names(std::span<const std::string> names);

}  // namespace tenon::driver

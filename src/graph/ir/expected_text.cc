#include "graph/ir/expected_text.h"

#include <algorithm>
#include <cstdint>

#include "graph/ir/name_text.h"
#include "support/text.h"

namespace tenon::graph {

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = 10;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    out += cat(i > 0 ? ", " : "", name_text(names[i]));
  }
  return names.empty() ? "none" : names.size() > kMost ? out + ", ..." : out;
}

std::string range_text(DataType dtype) {
  if (dtype.is_bool()) return "true or false";
  const uint64_t most = UINT64_MAX >> (64 - dtype.bits);
  if (dtype.is_unsigned_int()) return cat("0 to ", most);
  return cat(-static_cast<int64_t>(most / 2) - 1, " to ", most / 2);
}

}  // namespace tenon::graph

#include "driver/shown_names.h"

#include "support/text.h"

namespace tenon::driver {

std::string shortened(std::string_view text, size_t longest) {
  if (text.size() <= longest) return std::string(text);
  constexpr std::string_view kEllipsis = "…";
  size_t end = longest - kEllipsis.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return cat(text.substr(0, end), kEllipsis);
}

std::vector<std::string> shown_names(std::span<const std::string> names) {
  const size_t shown = names.size() <= kMostNames ? names.size() : kMostNames - 1;
  std::vector<std::string> out;
  for (const std::string& name : names.first(shown)) out.push_back(shown_name(name));
  if (shown < names.size()) out.push_back(cat(names.size() - shown, " more"));
  return out;
}

}  // namespace tenon::driver

// Numbers in arguments.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace tenon::tool {

// Parses the whole text as a number; nullopt if it is not a number or does not fit T. `base`: that
// of an integer type.
template <class T, class... Base>
std::optional<T> parse_number(std::string_view text, Base... base) {
  T value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tenon::tool

// Numbers in arguments.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace tenon::tool {

// Parses the whole text as a number; nullopt if it is not a number or does not fit T.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tenon::tool

// Text of at most N bytes, stored inline: a table of these has no pointers, which a shared library
// would have to relocate one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

namespace tenon::vm {

template <size_t N>
struct ShortText {
  char bytes[N] = {};
  uint8_t size = 0;

  constexpr ShortText() = default;
  constexpr ShortText(std::string_view text) : size(static_cast<uint8_t>(text.size())) {
    if (text.size() > N) throw std::logic_error("a text in a table is too long");
    std::copy_n(text.data(), text.size(), bytes);
  }
  constexpr ShortText(const char* text) : ShortText(std::string_view(text)) {}
  constexpr operator std::string_view() const { return {bytes, size}; }
};

// The N that holds each of these texts.
consteval size_t longest(std::initializer_list<std::string_view> texts) {
  size_t size = 0;
  for (std::string_view text : texts) size = std::max(size, text.size());
  return size;
}

}  // namespace tenon::vm

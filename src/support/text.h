// Text: joining printable values into a std::string without fmt or iostreams.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tenon {

void append_text(std::string& out, std::string_view text);
void append_text(std::string& out, char c);
void append_text(std::string& out, bool b);  // "true" or "false"
void append_text(std::string& out, long long v);
void append_text(std::string& out, unsigned long long v);
// The shortest text that parses to the same double: "1", "0.1", "1e+30", "inf", "nan".
void append_text(std::string& out, double v);
void append_text(std::string& out, float v);

namespace detail {
template <class T>
void append_one(std::string& out, const T& value) {
  using U = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<U, bool> || std::is_same_v<U, char> || std::is_same_v<U, float> ||
                std::is_same_v<U, double>) {
    append_text(out, value);
  } else if constexpr (std::is_enum_v<U>) {
    append_text(out, static_cast<long long>(value));
  } else if constexpr (std::signed_integral<U>) {
    append_text(out, static_cast<long long>(value));
  } else if constexpr (std::unsigned_integral<U>) {
    append_text(out, static_cast<unsigned long long>(value));
  } else if constexpr (std::is_convertible_v<const U&, std::string_view>) {
    append_text(out, static_cast<std::string_view>(value));
  } else {
    append_text(out, std::string_view(to_text(value)));  // found by argument-dependent lookup
  }
}
}  // namespace detail

// Concatenates strings, characters, booleans, numbers, and whatever has a `to_text`.
template <class... Args>
std::string cat(const Args&... args) {
  std::string out;
  (detail::append_one(out, args), ...);
  return out;
}

// "0x1a40".
std::string hex(uint64_t value);
// "1 node", "2 nodes".
std::string counted(uint64_t count, std::string_view what);
// "1 byte", "512 bytes", "10485760 bytes (10 MB)": from 1 KB on with a readable unit (1 KB is 1024
// bytes).
std::string bytes_text(uint64_t bytes);
// The parts with `separator` between them.
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// Makes text safe for a terminal: control characters (except line feed if `keep_lines`), characters
// that change the direction of text, and invalid UTF-8 become \n, \t or \x1b forms.
std::string printable(std::string_view text, bool keep_lines = false);
// The candidate closest to `name`, for "did you mean"; empty when none is close.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
// The text in double quotes; ", \ and whatever `printable` escapes are escaped.
std::string quoted(std::string_view text);

}  // namespace tenon

// Text: joining printable values into a std::string without fmt or iostreams.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
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

// An argument of `cat` as one word, so that a call costs little code: most of them are on paths
// that fail. Strings are pointed to; a literal is measured only when it is joined.
union Piece {
  const char* literal;
  const std::string* string;
  const std::string_view* view;
  long long integer;
  unsigned long long natural;
  double number;
};
enum class PieceKind : uint8_t {
  Literal,
  String,
  View,
  Integer,
  Natural,
  Double,
  Float,
  Bool,
  Char
};
inline constexpr size_t kPieceKindBits = 4;

template <class T>
constexpr PieceKind piece_kind() {
  if constexpr (std::is_same_v<T, bool>)
    return PieceKind::Bool;
  else if constexpr (std::is_same_v<T, char>)
    return PieceKind::Char;
  else if constexpr (std::is_same_v<T, float>)
    return PieceKind::Float;
  else if constexpr (std::is_same_v<T, double>)
    return PieceKind::Double;
  else if constexpr (std::is_enum_v<T> || std::signed_integral<T>)
    return PieceKind::Integer;
  else if constexpr (std::unsigned_integral<T>)
    return PieceKind::Natural;
  else if constexpr (std::is_same_v<T, std::string_view>)
    return PieceKind::View;
  else if constexpr (std::is_convertible_v<const T&, const char*>)
    return PieceKind::Literal;
  else
    return PieceKind::String;
}

template <class T>
Piece piece(const T& value) {
  constexpr PieceKind kind = piece_kind<T>();
  if constexpr (kind == PieceKind::Literal)
    return {.literal = value};
  else if constexpr (kind == PieceKind::String)
    return {.string = &value};
  else if constexpr (kind == PieceKind::View)
    return {.view = &value};
  else if constexpr (kind == PieceKind::Double || kind == PieceKind::Float)
    return {.number = value};
  else if constexpr (kind == PieceKind::Integer)
    return {.integer = static_cast<long long>(value)};
  else
    return {.natural = static_cast<unsigned long long>(value)};
}

// As something that `piece` takes.
template <class T>
decltype(auto) printable_value(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                std::is_convertible_v<const T&, const char*>) {
    return (value);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return static_cast<std::string_view>(value);
  } else {
    return to_text(value);  // found by argument-dependent lookup
  }
}

// `kinds` has four bits for each piece, the first piece's lowest.
std::string join_pieces(uint64_t kinds, const Piece* pieces, size_t count);

template <class... T>
std::string cat_values(const T&... values) {
  static_assert(sizeof...(T) * kPieceKindBits <= 64, "too many arguments: join them in two steps");
  uint64_t kinds = 0;
  size_t at = 0;
  ((kinds |= static_cast<uint64_t>(piece_kind<T>()) << kPieceKindBits * at++), ...);
  const Piece pieces[] = {piece(values)...};
  return join_pieces(kinds, pieces, sizeof...(T));
}
}  // namespace detail

// Concatenates strings, characters, booleans, numbers, and whatever has a `to_text`.
template <class... Args>
std::string cat(const Args&... args) {
  if constexpr (sizeof...(args) == 0)
    return {};
  else
    return detail::cat_values<std::remove_cvref_t<decltype(detail::printable_value(args))>...>(
        detail::printable_value(args)...);
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
// The first parts, for an error: "a, b" or, of many, "a, b, ..., h, and 12 more".
std::string join_some(std::vector<std::string> parts);
// The value of a hexadecimal digit of either case; -1 for any other character.
int hex_digit(char c);
// The bytes that pairs of hexadecimal digits stand for; nullopt for any other text. Polls.
std::optional<std::string> bytes_of_hex(std::string_view digits);
// Makes text safe for a terminal: control characters (except line feed if `keep_lines`), characters
// that change the direction of text, and invalid UTF-8 become \n, \t or \x1b forms.
std::string printable(std::string_view text, bool keep_lines = false);
// For "did you mean": the candidate closest to `name`, else one that begins with it, else empty.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
// The text in double quotes; ", \ and whatever `printable` escapes are escaped.
std::string quoted(std::string_view text);

}  // namespace tenon

#include "support/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "support/poll.h"

namespace tenon {

void append_text(std::string& out, std::string_view text) {
  out.append(text);
}
void append_text(std::string& out, char c) {
  out.push_back(c);
}
void append_text(std::string& out, bool b) {
  out.append(b ? "true" : "false");
}

namespace {
template <class T>
void append_number(std::string& out, T v) {
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  out.append(buffer, end);
}
}  // namespace

void append_text(std::string& out, long long v) {
  append_number(out, v);
}
void append_text(std::string& out, unsigned long long v) {
  append_number(out, v);
}

void append_text(std::string& out, double v) {
  if (std::isnan(v)) {
    out.append(std::signbit(v) ? "-nan" : "nan");
  } else {
    append_number(out, v);
  }
}

void append_text(std::string& out, float v) {
  if (std::isnan(v)) {
    out.append(std::signbit(v) ? "-nan" : "nan");
  } else {
    append_number(out, v);
  }
}

std::string detail::join_pieces(uint64_t kinds, const Piece* pieces, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i, kinds >>= kPieceKindBits) {
    const Piece& piece = pieces[i];
    switch (static_cast<PieceKind>(kinds & ((1 << kPieceKindBits) - 1))) {
      case PieceKind::Literal:
        out.append(piece.literal);
        break;
      case PieceKind::String:
        out.append(*piece.string);
        break;
      case PieceKind::View:
        out.append(*piece.view);
        break;
      case PieceKind::Integer:
        append_text(out, piece.integer);
        break;
      case PieceKind::Natural:
        append_text(out, piece.natural);
        break;
      case PieceKind::Double:
        append_text(out, piece.number);
        break;
      case PieceKind::Float:
        append_text(out, static_cast<float>(piece.number));
        break;
      case PieceKind::Bool:
        append_text(out, piece.natural != 0);
        break;
      case PieceKind::Char:
        append_text(out, static_cast<char>(piece.natural));
        break;
    }
  }
  return out;
}

std::string hex(uint64_t value) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, 16).ptr;
  return "0x" + std::string(buffer, end);
}

std::string counted(uint64_t count, std::string_view what) {
  return cat(count, " ", what, count == 1 ? "" : "s");
}

std::string bytes_text(uint64_t bytes) {
  std::string out = counted(bytes, "byte");
  static constexpr const char* kUnits[] = {"KB", "MB", "GB", "TB"};
  const char* unit = nullptr;
  auto value = static_cast<double>(bytes);
  for (size_t i = 0; i < std::size(kUnits) && value >= 1024; ++i, value /= 1024) unit = kUnits[i];
  return unit ? cat(out, " (", std::round(value * 10) / 10, " ", unit, ")") : out;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out.append(separator);
    out.append(parts[i]);
  }
  return out;
}

std::string join_some(std::vector<std::string> parts) {
  constexpr size_t kShown = 8;
  const size_t more = parts.size() - std::min(kShown, parts.size());
  if (more) {
    parts.resize(kShown);
    parts.push_back(cat("and ", more, " more"));
  }
  return join(parts, ", ");
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> bytes_of_hex(std::string_view digits) {
  if (digits.size() % 2) return std::nullopt;
  std::string out;
  Ticker ticker;
  for (size_t i = 0; i < digits.size(); i += 2) {
    ticker.tick();
    const int high = hex_digit(digits[i]), low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
  }
  return out;
}

namespace {
void append_escaped(std::string& out, unsigned char c) {
  static const char digits[] = "0123456789abcdef";
  switch (c) {
    case '\n':
      out.append("\\n");
      return;
    case '\t':
      out.append("\\t");
      return;
    case '\r':
      out.append("\\r");
      return;
    default:
      out.append("\\x");
      out.push_back(digits[c >> 4]);
      out.push_back(digits[c & 15]);
  }
}

// The length of the character at `at` if a terminal shows it as itself, else 0: for control
// characters (also U+0080 to U+009F, which some terminals obey), characters that change the
// direction of text or break the line, and invalid UTF-8.
size_t shown_bytes(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return first >= 0x20 && first != 0x7f;
  const size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < size) return 0;
  uint32_t code = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >> 11 == 0xd800 >> 11;
  const bool directs = code == 0x61c || code == 0x200e || code == 0x200f ||
                       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return code < kLeast[size] || code > 0x10ffff || surrogate || code < 0xa0 || directs ? 0 : size;
}

// Appends printable characters as they are, and escapes other bytes and the bytes in `more`.
void append_shown(std::string& out, std::string_view text, std::string_view kept,
                  std::string_view more) {
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t size = kept.find(c) != std::string_view::npos ? 1 : shown_bytes(text, at);
    if (more.find(c) != std::string_view::npos) out.push_back('\\');
    if (size) {
      out.append(text.substr(at, size));
    } else {
      append_escaped(out, static_cast<unsigned char>(c));
    }
    at += std::max(size, size_t{1});
  }
}
}  // namespace

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  append_shown(out, text, keep_lines ? "\n" : "", "");
  return out;
}

namespace {
// Optimal string alignment distance: the number of letters inserted, removed, changed, or swapped
// with a neighbour.
size_t edit_distance(std::string_view a, std::string_view b) {
  const auto width = static_cast<ptrdiff_t>(b.size()) + 1;
  std::vector<size_t> rows((a.size() + 1) * (b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t* const at = &rows[i * (b.size() + 1) + j];
      *at = i + j;
      if (i == 0 || j == 0) continue;
      *at = std::min({at[-1] + 1, at[-width] + 1, at[-width - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        *at = std::min(*at, at[-2 * width - 2] + 1);
    }
  }
  return rows.back();
}
}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 200;  // bounds the time that a hostile name takes
  if (name.empty() || name.size() > kLongest) return "";
  std::string best;
  // A more distant name wouldn't help, least of all among short ones. Of two that are equally near,
  // the one that begins as the name does: Sone is Some, not None.
  size_t best_distance = 2 * (name.size() < 6 ? 2 : name.size() / 3 + 2);
  for (const auto& c : candidates) {
    if (c.empty() || c.size() > kLongest) continue;
    if (best.empty() && name.size() > 2 && c.starts_with(name)) best = c;
    const size_t d = 2 * edit_distance(name, c) + (c.front() != name.front());
    if (d < best_distance) {
      best_distance = d;
      best = c;
    }
  }
  return best;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  append_shown(out, text, "", "\"\\");
  out.push_back('"');
  return out;
}

}  // namespace tenon

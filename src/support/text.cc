#include "support/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

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

std::string hex(uint64_t value) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, 16).ptr;
  return "0x" + std::string(buffer, end);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out.append(separator);
    out.append(parts[i]);
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
bool is_control(unsigned char c) {
  return c < 0x20 || c == 0x7f;
}
}  // namespace

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  for (unsigned char c : text) {
    if (is_control(c) && !(keep_lines && c == '\n')) {
      append_escaped(out, c);
    } else {
      out.push_back(static_cast<char>(c));
    }
  }
  return out;
}

namespace {
// Levenshtein's distance, one row at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}
}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 200;  // a hostile name must not cost time
  if (name.size() > kLongest) return "";
  std::string best;
  size_t best_distance = name.size() / 3 + 2;  // farther than that it helps nobody
  for (const auto& c : candidates) {
    if (c.size() > kLongest) continue;
    size_t d = edit_distance(name, c);
    if (d < best_distance) {
      best_distance = d;
      best = c;
    }
  }
  return best;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (is_control(c)) {
      append_escaped(out, c);
    } else {
      if (c == '"' || c == '\\') out.push_back('\\');
      out.push_back(static_cast<char>(c));
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace tenon

#include "vm/asm/line_cursor.h"

#include <charconv>

#include "support/text.h"

namespace tenon::vm {
bool LineCursor::is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

void LineCursor::skip() {
  while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) {
    ++at_;
  }
  if (at_ < line_.size() && line_[at_] == ';') at_ = line_.size();
}

bool LineCursor::at_end() {
  skip();
  return at_ == line_.size();
}

char LineCursor::peek() {
  return at_end() ? '\0' : line_[at_];
}

bool LineCursor::take(char c) {
  if (peek() != c || c == '\0') return false;
  ++at_;
  return true;
}

bool LineCursor::take_word(std::string_view w) {
  skip();
  if (!line_.substr(at_).starts_with(w)) return false;
  size_t end = at_ + w.size();
  if (end < line_.size() && is_name_byte(line_[end])) return false;
  at_ = end;
  return true;
}

void LineCursor::need(char c) {
  if (!take(c)) fail("this line is not assembly", cat("'", c, "'"));
}

void LineCursor::need_end() {
  if (!at_end()) fail("unexpected text after the statement", "the end of the line");
}

std::string_view LineCursor::name() {
  skip();
  size_t begin = at_;
  while (at_ < line_.size() && is_name_byte(line_[at_])) ++at_;
  if (at_ == begin) fail("this line is not assembly", "a name");
  return line_.substr(begin, at_ - begin);
}

std::string LineCursor::string() {
  if (!take('"')) fail("this line is not assembly", "a string in double quotes");
  std::string out;
  for (; at_ < line_.size(); ++at_) {
    char c = line_[at_];
    if (c == '"') {
      ++at_;
      return out;
    }
    if (c != '\\') {
      out += c;
      continue;
    }
    if (++at_ == line_.size()) break;
    switch (line_[at_]) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '"':
        out += '"';
        break;
      case '\\':
        out += '\\';
        break;
      case 'x': {
        int high = at_ + 2 < line_.size() ? hex_digit(line_[at_ + 1]) : -1;
        int low = high >= 0 ? hex_digit(line_[at_ + 2]) : -1;
        if (low < 0) fail("not an escape", "two hexadecimal digits after \\x");
        out += static_cast<char>(high * 16 + low);
        at_ += 2;
        break;
      }
      default:
        fail("not an escape", "\\n \\t \\r \\\" \\\\ or \\x and two digits");
    }
  }
  fail("the string isn't closed", "a closing double quote");
}

std::string LineCursor::hex_string() {
  skip();
  const size_t begin = at_;
  auto bytes = bytes_of_hex(string());
  if (!bytes) fail("invalid bytes", "pairs of hexadecimal digits", begin);
  return std::move(*bytes);
}

std::string LineCursor::name_or_string() {
  return peek() == '"' ? string() : std::string(name());
}

uint64_t LineCursor::unsigned_integer() {
  skip();
  std::string_view rest = line_.substr(at_);
  int base = rest.starts_with("0x") ? 16 : 10;
  size_t prefix = base == 16 ? 2 : 0;
  uint64_t value = 0;
  auto [end, error] = std::from_chars(rest.data() + prefix, rest.data() + rest.size(), value, base);
  if (error != std::errc()) {
    fail(error == std::errc::result_out_of_range ? "the number doesn't fit 64 bits"
                                                 : "this line is not assembly",
         "an integer");
  }
  at_ += static_cast<size_t>(end - rest.data());
  return value;
}

int64_t LineCursor::integer() {
  size_t begin = at_;
  bool negative = take('-');
  uint64_t value = unsigned_integer();
  if (value > (uint64_t{1} << 63) - (negative ? 0 : 1)) {
    fail("the number doesn't fit 64 bits", "a signed integer", begin);
  }
  return static_cast<int64_t>(negative ? 0 - value : value);
}

std::string_view LineCursor::balanced_until(std::string_view ends) {
  skip();
  size_t begin = at_;
  int depth = 0;
  for (; at_ < line_.size(); ++at_) {
    char c = line_[at_];
    if (depth == 0 && ends.find(c) != std::string_view::npos) break;
    if (c == '"') {
      do at_ += line_[at_] == '\\' ? 2 : 1;
      while (at_ < line_.size() && line_[at_] != '"');
      if (at_ >= line_.size()) {
        at_ = line_.size();
        fail("the string isn't closed", "a closing double quote");
      }
    }
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
  }
  return line_.substr(begin, at_ - begin);
}

void LineCursor::fail(std::string message, std::string expected, size_t at) const {
  if (at == SIZE_MAX) at = at_;
  // Shows a long line only around the error, to keep it readable.
  size_t first = at > 60 ? at - 60 : 0;
  std::string shown = printable(line_.substr(first, 100));
  std::string caret(printable(line_.substr(first, at - first)).size(), ' ');
  Error e(ErrorKind::Usage, Span::at(std::string(file_), number_, static_cast<int32_t>(at + 1)),
          std::move(message));
  e.where(shown).row("", caret + "^");
  if (!expected.empty()) e.expected(std::move(expected));
  throw e;
}

}  // namespace tenon::vm

#include "graph/ir/lexer.h"

#include <algorithm>

#include "graph/ir/text.h"

namespace tenon::graph {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
int hex_value(char c) {
  return is_digit(c) ? c - '0' : (c | 32) - 'a' + 10;
}

}  // namespace

Span Source::span(uint32_t offset) const {
  auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - lines_.begin();
  uint32_t start = line > 0 ? lines_[static_cast<size_t>(line) - 1] : 0;
  return Span::at(name_, static_cast<int32_t>(std::max<int64_t>(line, 1)),
                  static_cast<int32_t>(offset - start + 1));
}

void show_line(Error* e, std::string_view text, const Span& span) {
  if (span.line < 1) return;
  size_t start = 0;
  for (int32_t line = 1; line < span.line; ++line) {
    start = text.find('\n', start);
    if (start++ == std::string_view::npos) return;
  }
  size_t end = std::min(text.find('\n', start), text.size());
  // The part of the line around the column.
  constexpr size_t kWidth = 90;
  size_t column = span.column > 0 ? static_cast<size_t>(span.column) - 1 : 0;
  size_t from = column > kWidth - 20 ? column - (kWidth - 20) : 0;
  std::string line(text.substr(std::min(start + from, end), std::min(kWidth, end - start)));
  if (start + from + line.size() > end) line.resize(end - std::min(start + from, end));
  std::replace(line.begin(), line.end(), '\t', ' ');
  std::string mark(column - from, ' ');
  e->row(cat(span.line), "| " + line);
  if (span.column > 0) e->row("", "| " + mark + "^");
}

void Source::fail(size_t at, const std::string& message, const std::string& expected) const {
  Error e(ErrorKind::Usage, span(static_cast<uint32_t>(at)), message);
  if (!expected.empty()) e.expected(expected);
  throw e;
}

// The content of the string whose opening quote is at *i; sets *i to after the closing quote.
std::string_view Source::unescape(size_t* i) {
  size_t open = *i, start = open + 1, p = start;
  std::string* copy = nullptr;
  for (;; ++p) {
    ticker_.tick();
    if (p >= text_.size() || text_[p] == '\n')
      fail(open, "a string without an end", "a closing \"");
    char c = text_[p];
    if (c == '"') break;
    if (c != '\\') {
      if (copy) copy->push_back(c);
      continue;
    }
    if (!copy) {
      unescaped_.push_back(std::make_unique<std::string>(text_.substr(start, p - start)));
      copy = unescaped_.back().get();
    }
    char e = p + 1 < text_.size() ? text_[p + 1] : '\0';
    if (e == 'x' && p + 3 < text_.size() && is_hex(text_[p + 2]) && is_hex(text_[p + 3])) {
      copy->push_back(static_cast<char>(hex_value(text_[p + 2]) * 16 + hex_value(text_[p + 3])));
      p += 3;
      continue;
    }
    switch (e) {
      case 'n':
        copy->push_back('\n');
        break;
      case 't':
        copy->push_back('\t');
        break;
      case 'r':
        copy->push_back('\r');
        break;
      case '"':
        copy->push_back('"');
        break;
      case '\\':
        copy->push_back('\\');
        break;
      default:
        fail(p, "an unknown escape in a string", "\\n, \\t, \\r, \\\", \\\\ or \\x1b");
    }
    ++p;
  }
  *i = p + 1;
  return copy ? std::string_view(*copy) : text_.substr(start, p - start);
}

size_t Source::after_word(size_t at) {
  while (at < text_.size() && (is_letter(text_[at]) || is_digit(text_[at]))) {
    ticker_.tick();
    ++at;
  }
  return at;
}

size_t Source::after_blanks(size_t at) {
  while (at < text_.size() && is_blank(text_[at])) {
    ticker_.tick();
    ++at;
  }
  return at;
}

Token Source::next(size_t* i) {
  size_t at = *i;
  char c = text_[at];
  auto peek = [&](size_t k) { return at + k < text_.size() ? text_[at + k] : '\0'; };
  auto token = [&](TokenKind kind, size_t end) {
    *i = end;
    return Token{kind, text_.substr(at, end - at), static_cast<uint32_t>(at)};
  };
  if (is_letter(c)) {
    return token(TokenKind::kWord, after_word(at));
  }
  if (c == '%' || c == '@' || c == '$') {
    TokenKind kind = c == '%' ? TokenKind::kVar : c == '@' ? TokenKind::kGlobal : TokenKind::kTemp;
    size_t p = at + 1;
    if (peek(1) == '"' && c != '$') {
      std::string_view name = unescape(&p);
      *i = p;
      return Token{kind, name, static_cast<uint32_t>(at)};
    }
    p = after_word(p);
    if (p == at + 1) fail(at, cat("a name is missing after '", c, "'"), "letters or digits");
    *i = p;
    return Token{kind, text_.substr(at + 1, p - at - 1), static_cast<uint32_t>(at)};
  }
  if (c == '"') {
    size_t p = at;
    std::string_view s = unescape(&p);
    *i = p;
    return Token{TokenKind::kString, s, static_cast<uint32_t>(at)};
  }
  if (is_digit(c)) {
    size_t p = at;
    if (c == '0' && peek(1) == 'x' && is_hex(peek(2))) {
      p += 2;
      while (p < text_.size() && is_hex(text_[p])) ++p;
      return token(TokenKind::kHex, p);
    }
    while (p < text_.size() && is_digit(text_[p])) ++p;
    bool is_float = false;
    if (p + 1 < text_.size() && text_[p] == '.' && is_digit(text_[p + 1])) {
      is_float = true;
      ++p;
      while (p < text_.size() && is_digit(text_[p])) ++p;
    }
    if (p < text_.size() && (text_[p] | 32) == 'e') {
      size_t q = p + 1;
      if (q < text_.size() && (text_[q] == '+' || text_[q] == '-')) ++q;
      if (q < text_.size() && is_digit(text_[q])) {
        is_float = true;
        p = q;
        while (p < text_.size() && is_digit(text_[p])) ++p;
      }
    }
    return token(is_float ? TokenKind::kFloat : TokenKind::kInt, p);
  }
  // Those that the language doesn't have are tokens for the sake of errors.
  for (std::string_view sign :
       {"...", "->", "=>", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "**"}) {
    if (text_.substr(at, sign.size()) == sign) return token(TokenKind::kSign, at + sign.size());
  }
  if (std::string_view("()[]{},:;=<>!+-*/&|^~._?").find(c) != std::string_view::npos) {
    return token(TokenKind::kSign, at + 1);
  }
  fail(at, "this character is not part of the language",
       c == '#'    ? "// before a comment"
       : c == '\'' ? "double quotes around a string"
                   : "");
}

namespace {
// Counts what a vector allocates when it grows, which doubles it.
template <class T>
void count_growth(const std::vector<T>& grown,
                  std::vector<std::unique_ptr<CountedBytes>>* counted) {
  if (grown.size() < grown.capacity()) return;
  const size_t more = std::max<size_t>(grown.capacity(), 1) * sizeof(T);
  counted->push_back(std::make_unique<CountedBytes>(more));
}
}  // namespace

void Source::find_lines() {
  lines_.assign(1, 0);
  for (size_t start = 0; start < text_.size(); start += kPollBytes) {
    poll();
    const std::string_view part = text_.substr(start, kPollBytes);
    for (size_t p = part.find('\n'); p != std::string_view::npos; p = part.find('\n', p + 1)) {
      count_growth(lines_, &counted_);
      lines_.push_back(static_cast<uint32_t>(start + p + 1));
    }
  }
}

std::vector<Token> Source::tokens() {
  if (text_.size() >= UINT32_MAX) {
    throw Error(ErrorKind::Usage, cat(name_, " is too large for IR text"))
        .expected("less than 4 GiB; large constants belong in a weight file");
  }
  find_lines();
  std::vector<Token> out;
  size_t i = 0;
  while (true) {
    ticker_.tick();
    i = after_blanks(i);
    if (i >= text_.size()) break;
    if (text_.substr(i, 2) == "//") {
      i = std::min(text_.find('\n', i), text_.size());
      continue;
    }
    count_growth(out, &counted_);
    out.push_back(next(&i));
  }
  out.push_back(Token{TokenKind::kEnd, {}, static_cast<uint32_t>(text_.size())});
  return out;
}

}  // namespace tenon::graph

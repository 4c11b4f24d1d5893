// Tokens of IR text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "object/counted_bytes.h"
#include "support/error.h"
#include "support/poll.h"

namespace tenon::graph {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,    // relu
  kVar,     // %x, %"odd name": text is the name
  kGlobal,  // @main
  kTemp,    // $3: a shared part of a kernel's expression
  kInt,     // 42
  kHex,     // 0x7fc00001
  kFloat,   // 1.5, 1e-3
  kString,  // "text": text is the content
  kSign,    // punctuation and operators
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  uint32_t begin = 0;  // where it starts in the source
  bool is(std::string_view sign) const { return kind == TokenKind::kSign && text == sign; }
  bool word(std::string_view w) const { return kind == TokenKind::kWord && text == w; }
};

class Source {
 public:
  // `text` must outlive the source.
  Source(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  // Takes linear time. Throws Usage for a byte or word that is not a token.
  std::vector<Token> tokens();
  Span span(uint32_t offset) const;
  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }

 private:
  [[noreturn]] void fail(size_t at, const std::string& message, const std::string& expected) const;
  std::string_view unescape(size_t* i);
  Token next(size_t* i);
  // The first byte from `at` on that isn't a letter or digit (of a word), or a blank.
  size_t after_word(size_t at);
  size_t after_blanks(size_t at);
  void find_lines();

  std::string_view text_;
  std::string name_;
  std::vector<uint32_t> lines_;  // where each line starts
  std::vector<std::unique_ptr<std::string>> unescaped_;
  std::vector<std::unique_ptr<CountedBytes>> counted_;  // the tokens, the lines
  Ticker ticker_;
};

}  // namespace tenon::graph

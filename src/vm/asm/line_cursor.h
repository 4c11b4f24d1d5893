// Reads the tokens of one line of assembly. Errors name the place and show the line with a caret
// below it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/error.h"

namespace tenon::vm {

class LineCursor {
 public:
  // `line` must outlive the cursor; `number` counts from 1.
  LineCursor(std::string_view file, std::string_view line, int32_t number)
      : file_(file), line_(line), number_(number) {}

  // Skips spaces and a comment (";").
  void skip();
  bool at_end();
  size_t position() const { return at_; }
  void set_position(size_t at) { at_ = at; }
  char peek();  // 0 at the end

  bool take(char c);
  // Accepts the word `w` unless a name character follows it.
  bool take_word(std::string_view w);
  void need(char c);
  void need_end();

  static bool is_name_byte(char c);
  std::string_view name();   // letters, digits, '_', '.', not empty
  std::string string();      // in double quotes, escapes as `quoted` writes them
  std::string hex_string();  // pairs of hexadecimal digits in double quotes, as bytes
  std::string name_or_string();
  int64_t integer();  // decimal or 0x...; any 64-bit value
  uint64_t unsigned_integer();
  // The bytes up to one of `ends` outside of brackets, parentheses and quotes.
  std::string_view balanced_until(std::string_view ends);

  // Throws an error at byte `at` of the line (default: the current one).
  [[noreturn]] void fail(std::string message, std::string expected = "",
                         size_t at = SIZE_MAX) const;

  Span span() const { return Span::at(std::string(file_), number_, static_cast<int32_t>(at_ + 1)); }

 private:
  std::string_view file_, line_;
  int32_t number_;
  size_t at_ = 0;
};

}  // namespace tenon::vm

// A reader of one line of assembly, for tokens as the text form has them. Errors name the place and
// show the line with a caret below it.
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

  // Past spaces; at a comment (";") the line ends.
  void skip();
  bool at_end();
  size_t position() const { return at_; }
  void set_position(size_t at) { at_ = at; }
  char peek();  // 0 at the end

  bool take(char c);
  // The word `w`, not followed by a byte of a name.
  bool take_word(std::string_view w);
  void need(char c);
  void need_end();

  static bool is_name_byte(char c);
  std::string_view name();  // letters, digits, '_', '.', not empty
  std::string string();     // in double quotes, escapes as `quoted` writes them
  std::string name_or_string();
  int64_t integer();  // decimal or 0x...; the whole 64 bits
  uint64_t unsigned_integer();
  // The bytes up to one of `ends` that no bracket, parenthesis or quotes hold.
  std::string_view balanced_until(std::string_view ends);

  // At the byte `at` of the line (default: the current one).
  [[noreturn]] void fail(std::string message, std::string expected = "",
                         size_t at = SIZE_MAX) const;

  Span span() const { return Span::at(std::string(file_), number_, static_cast<int32_t>(at_ + 1)); }

 private:
  std::string_view file_, line_;
  int32_t number_;
  size_t at_ = 0;
};

}  // namespace tenon::vm

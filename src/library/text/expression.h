// Regular expressions, by RE2, whose time is linear in the text and whose memory is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace re2 {
class RE2;
}

namespace tenon::text {

class Expression {
 public:
  // Errors name the function.
  Expression(std::string_view function, std::string_view pattern);

  // How many steps RE2 may take for so many bytes.
  size_t steps(size_t bytes) const { return bytes * static_cast<size_t>(steps_per_byte_); }
  // Throws if `text`, element i, is so long that one match could not be stopped in time.
  void require_length(int64_t i, std::string_view text) const;

  // Both are for texts that passed require_length.
  bool matches_all(std::string_view text) const;
  // The first match at or after a byte, and the longest of those that begin there. What precedes
  // the byte is read for \b and ^ only.
  std::optional<std::string_view> find(std::string_view text, size_t from) const;

 private:
  std::string_view function_;
  std::shared_ptr<const re2::RE2> pattern_;
  int64_t steps_per_byte_;
};

}  // namespace tenon::text

// UTF-8: its validity, and its characters (code points).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

// The length of the sequence at the start of `s`, which isn't empty (Unicode's table 3-7); 0 if it
// is invalid.
size_t utf8_length(std::string_view s);
bool is_utf8(std::string_view text);  // polls
// The first code point of valid text that isn't empty, which is removed from it.
uint32_t take_code_point(std::string_view& text);
void append_utf8(std::string& out, uint32_t code_point);

}  // namespace tenon

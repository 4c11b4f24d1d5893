// What a program or a host can see of a value, as bytes, to compare values by.
#pragma once

#include <string>

#include "object/any.h"

namespace tenon::fuzz {

// Appends elements, strings, fields, captures and whatever else is reachable, without addresses,
// and an ellipsis in place of what exceeds `most` bytes in all. Function values of the host, and
// other objects, appear as their type alone.
void append_content(const AnyView& value, std::string* to, size_t most = size_t{1} << 22);

inline std::string content_of(const AnyView& value) {
  std::string out;
  append_content(value, &out);
  return out;
}

}  // namespace tenon::fuzz

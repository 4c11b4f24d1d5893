// Bytes that are read once, from the first to the last: a file, a pipe, a member of an archive.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace tenon::tool {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // For messages.
  virtual const std::string& name() const = 0;
  // The number of all its bytes, where that is known before they are read.
  virtual std::optional<size_t> size() const = 0;
  // Reads the next bytes until there are `size` or the end is reached; returns their number.
  virtual size_t read(char* out, size_t size) = 0;
};

}  // namespace tenon::tool

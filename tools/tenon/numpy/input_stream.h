// A file, pipe, device or standard input, read from its beginning to its end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tools/tenon/numpy/byte_source.h"

namespace tenon::tool {

// The name of a FILE in messages: its path, or <stdin>.
std::string input_name(const std::string& path);

// Whether a path is "-" or a named pipe: something that can be read only once.
bool is_stream(const std::string& path);

// Reading is polled (support/poll.h), also while it waits for bytes. Throws Usage if the file can't
// be read.
class InputStream final : public ByteSource {
 public:
  // "-" is standard input, which is read only once in a process.
  explicit InputStream(const std::string& path);
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;
  ~InputStream() override;  // leaves standard input open

  const std::string& name() const override { return name_; }
  // That of a regular file when it is asked.
  std::optional<size_t> size() const override;
  size_t read(char* out, size_t size) override;
  // All further bytes, which count for the memory limit of this thread's work.
  std::string read_rest();

 private:
  [[noreturn]] void fail() const;
  void wait() const;

  std::string name_;
  int fd_;
};

}  // namespace tenon::tool

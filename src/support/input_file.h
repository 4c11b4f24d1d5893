// Files that are read.
#pragma once

#include <cstddef>
#include <string>

namespace tenon {

// A regular file, open for reading. Errors are Usage and name the file and the system's reason.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  size_t size() const { return size_; }  // when it was opened
  // Maps the whole file for reading; null if it is empty. The caller unmaps it with munmap.
  // Truncating the file while the bytes are in use ends the process (SIGBUS).
  const void* map() const;
  // Passes the descriptor to the caller, who closes it; nothing can be read or mapped afterwards.
  int release();
  // Reads the next bytes; returns 0 at the end of the file, which may have been truncated.
  size_t read(char* out, size_t most);

 private:
  std::string path_;
  int fd_;
  size_t size_ = 0;
};

}  // namespace tenon

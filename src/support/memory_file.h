// A file in memory without a name, for code that accepts only paths: the dynamic loader, the
// linker. Nothing is left over when the process ends, however it ends.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

class MemoryFile {
 public:
  // `name` is what /proc shows. A Runtime error with the system's reason when memory or descriptors
  // run out or RLIMIT_FSIZE is too small.
  MemoryFile(const char* name, std::string_view bytes);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  int descriptor() const { return fd_; }
  // A path to the file, valid in this process for as long as this object lives.
  std::string path() const;

 private:
  int fd_;
};

}  // namespace tenon

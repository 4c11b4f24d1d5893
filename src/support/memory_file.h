// A file that has no name and lives in memory, for code that takes paths only: the dynamic loader,
// the linker. Nothing is left over when the process ends, however it ends.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

class MemoryFile {
 public:
  // `name` is what /proc shows. A Runtime error with the system's reason when memory, descriptors
  // or RLIMIT_FSIZE don't suffice.
  MemoryFile(const char* name, std::string_view bytes);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  int descriptor() const { return fd_; }
  // Names the file in this process, for as long as this object lives.
  std::string path() const;

 private:
  int fd_;
};

}  // namespace tenon

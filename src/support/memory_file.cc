#include "support/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/error.h"
#include "support/text.h"

namespace tenon {

MemoryFile::MemoryFile(const char* name, std::string_view bytes)
    : fd_(memfd_create(name, MFD_CLOEXEC)) {
  int error = fd_ < 0 ? errno : 0;
  while (error == 0 && !bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) error = errno;
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  if (error == 0) return;
  if (fd_ >= 0) close(fd_);
  throw Error(ErrorKind::Runtime, cat("cannot place a file in memory: ", std::strerror(error)))
      .where(name);
}

MemoryFile::~MemoryFile() {
  close(fd_);
}

std::string MemoryFile::path() const {
  return cat("/proc/self/fd/", fd_);
}

}  // namespace tenon

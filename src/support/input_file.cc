#include "support/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "support/error.h"
#include "support/text.h"

namespace tenon {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int code) {
  throw Error(ErrorKind::Usage, cat(printable(path), ": ", what, ": ", std::strerror(code)));
}

// O_NONBLOCK: opening a named pipe must not wait for a writer.
int open_for_reading(const std::string& path) {
  if (path.find('\0') != std::string::npos) fail(path, "can't be opened", EINVAL);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail(path, "can't be opened", errno);
  return fd;
}

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path), fd_(open_for_reading(path)) {
  struct stat status {};
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd_);
    throw Error(ErrorKind::Usage, cat(printable(path), ": not a regular file"));
  }
  size_ = static_cast<size_t>(status.st_size);
}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

int InputFile::release() {
  return std::exchange(fd_, -1);
}

const void* InputFile::map() const {
  if (size_ == 0) return nullptr;
  const void* memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
  if (memory == MAP_FAILED) fail(path_, "can't be mapped", errno);
  return memory;
}

size_t InputFile::read(char* out, size_t most) {
  for (;;) {
    const ssize_t n = ::read(fd_, out, most);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) fail(path_, "can't be read", errno);
  }
}

}  // namespace tenon

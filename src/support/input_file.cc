#include "support/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/error.h"
#include "support/text.h"

namespace tenon {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int code) {
  throw Error(ErrorKind::Usage, cat(printable(path), ": ", what, ": ", std::strerror(code)));
}

int open_for_reading(const std::string& path, int flags) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) fail(path, "can't be opened", errno);
  return fd;
}

size_t read_some(const std::string& path, int fd, char* out, size_t most) {
  for (;;) {
    const ssize_t n = ::read(fd, out, most);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) fail(path, "can't be read", errno);
  }
}

}  // namespace

// O_NONBLOCK: opening a named pipe must not wait for a writer.
InputFile::InputFile(const std::string& path)
    : path_(path), fd_(open_for_reading(path, O_NONBLOCK)) {
  struct stat status {};
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd_);
    throw Error(ErrorKind::Usage, cat(printable(path), ": not a regular file"));
  }
  size_ = static_cast<size_t>(status.st_size);
}

InputFile::~InputFile() {
  close(fd_);
}

const void* InputFile::map() const {
  if (size_ == 0) return nullptr;
  const void* memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
  if (memory == MAP_FAILED) fail(path_, "can't be mapped", errno);
  return memory;
}

size_t InputFile::read(char* out, size_t most) {
  return read_some(path_, fd_, out, most);
}

std::string read_file(const std::string& path) {
  struct Descriptor {
    ~Descriptor() { close(fd); }
    int fd;
  } const file{open_for_reading(path, 0)};
  // A regular file's bytes are allocated at once, so that a huge file fails immediately instead of
  // growing the process until it is killed. One more finds its end without growing.
  struct stat status {};
  const bool regular = fstat(file.fd, &status) == 0 && S_ISREG(status.st_mode);
  std::string bytes(regular ? static_cast<size_t>(status.st_size) + 1 : 0, '\0');
  constexpr size_t kPart = 64 << 10;
  for (size_t size = 0;;) {
    if (size == bytes.size()) bytes.resize(2 * size + kPart);
    const size_t n = read_some(path, file.fd, bytes.data() + size, bytes.size() - size);
    size += n;
    if (n > 0) continue;
    bytes.resize(size);
    return bytes;
  }
}

}  // namespace tenon

#include "tools/tenon/numpy/input_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/call_context.h"
#include "support/error.h"

namespace tenon::tool {
namespace {

int standard_input() {
  static bool taken = false;
  if (taken) {
    throw Error(ErrorKind::Usage, "standard input can be read only once")
        .help("give - for only one of the files");
  }
  taken = true;
  return STDIN_FILENO;
}

}  // namespace

std::string input_name(const std::string& path) {
  return path == "-" ? "<stdin>" : path;
}

bool is_stream(const std::string& path) {
  struct stat status {};
  return path == "-" || (stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode));
}

// O_NONBLOCK: opening a named pipe must not wait for a writer. `wait` does.
InputStream::InputStream(const std::string& path)
    : name_(input_name(path)),
      fd_(path == "-" ? standard_input() : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) fail();
}

InputStream::~InputStream() {
  if (fd_ > STDIN_FILENO) close(fd_);
}

void InputStream::fail() const {
  throw Error::of_system(ErrorKind::Usage, cat("cannot read ", printable(name_)), errno);
}

std::optional<size_t> InputStream::size() const {
  struct stat status {};
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return static_cast<size_t>(status.st_size);
}

void InputStream::wait() const {
  pollfd waiting{fd_, POLLIN, 0};
  constexpr int kMilliseconds = 20;
  for (;;) {
    tenon::poll();
    const int ready = ::poll(&waiting, 1, kMilliseconds);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail();
  }
}

size_t InputStream::read(char* out, size_t size) {
  constexpr size_t kPart = size_t{1} << 20;
  size_t done = 0;
  while (done < size) {
    wait();
    const ssize_t n = ::read(fd_, out + done, std::min(kPart, size - done));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) fail();
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

std::string InputStream::read_rest() {
  std::string bytes;
  constexpr size_t kPart = size_t{1} << 20;
  for (size_t size = 0;;) {
    const size_t more = std::max(kPart, size);
    charge(more);
    bytes.resize(size + more);
    const size_t n = read(bytes.data() + size, more);
    size += n;
    if (n == more) continue;
    bytes.resize(size);
    return bytes;
  }
}

}  // namespace tenon::tool

#include "tools/tenon/file_argument.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "device/call_context.h"
#include "support/error.h"
#include "support/input_file.h"

namespace tenon::tool {
namespace {

// Closed at the end, unless it is standard input. Opening a named pipe doesn't wait for a writer;
// wait_for_bytes does.
struct Stream {
  explicit Stream(const std::string& path)
      : name(input_name(path)),
        fd(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd < 0) fail();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (fd > STDIN_FILENO) close(fd);
  }
  [[noreturn]] void fail() const {
    throw Error(ErrorKind::Usage, cat("cannot read ", name, ": ", std::strerror(errno)));
  }

  std::string name;
  int fd;
};

// Waits for bytes, or the end, or until this thread's work is to stop.
void wait_for_bytes(const Stream& stream) {
  pollfd waiting{stream.fd, POLLIN, 0};
  constexpr int kMilliseconds = 20;
  for (;;) {
    const int ready = ::poll(&waiting, 1, kMilliseconds);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) stream.fail();
    tenon::poll();
  }
}

std::string read_stream(const std::string& path) {
  const Stream stream(path);
  std::string bytes;
  constexpr size_t kPart = size_t{1} << 20;
  for (size_t size = 0;;) {
    wait_for_bytes(stream);
    if (bytes.size() - size < kPart) {
      const size_t more = std::max(kPart, bytes.size());
      charge(more);
      bytes.resize(bytes.size() + more);
    }
    const ssize_t n = read(stream.fd, bytes.data() + size, kPart);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) stream.fail();
    size += static_cast<size_t>(n);
    if (n > 0) continue;
    bytes.resize(size);
    return bytes;
  }
}

// Whether it must be read as a stream. Other devices are refused like any file that isn't regular.
bool is_stream(const std::string& path) {
  struct stat status {};
  return path == "-" || (stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode));
}

driver::Source open_with(const std::string& path, driver::FileAccess access) {
  if (is_stream(path)) return driver::source_of(read_stream(path), input_name(path));
  return driver::open_source(path, access);
}

}  // namespace

std::string input_name(const std::string& path) {
  return path == "-" ? "<stdin>" : path;
}

std::string read_input(const std::string& path) {
  return is_stream(path) ? read_stream(path) : read_file(path);
}

driver::Source open_input(const std::string& path) {
  return open_with(path, driver::FileAccess::Mapped);
}

driver::Source open_input(const std::string& path, bool untrusted, const WorkLimits& limits) {
  WorkBudget budget(limits, "reading", input_name(path));
  const WorkBudget::Scope scope(&budget);
  return open_with(path, untrusted ? driver::FileAccess::Copied : driver::FileAccess::Mapped);
}

driver::Source open_executable(const std::string& path) {
  return require_executable(open_input(path), path);
}

driver::Source require_executable(driver::Source source, const std::string& path) {
  if (source.kind == driver::SourceKind::Executable) return source;
  const char* command = source.is_graph() ? "compile" : "asm";
  throw Error(ErrorKind::Usage, cat(printable(source.name), " is not an executable"))
      .found(driver::to_text(source.kind))
      .expected("a .tnx file")
      .help(cat("make one with `tenon ", command, " ", printable(path), "`"));
}

std::string default_output(const std::string& input, std::string_view extension) {
  if (input == "-") return input;
  return std::filesystem::path(input).replace_extension(extension).string();
}

void check_not_terminal(const std::string& output) {
  if (output != "-" || isatty(STDOUT_FILENO) == 0) return;
  throw Error(ErrorKind::Usage, "an executable is not written to a terminal")
      .help("write it to a file with -o FILE, or to a pipe");
}

}  // namespace tenon::tool

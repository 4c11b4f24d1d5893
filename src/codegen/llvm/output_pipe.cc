#include "codegen/llvm/output_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "support/error.h"
#include "support/text.h"

namespace tenon::codegen {
namespace {

[[noreturn]] void fail(const char* what, int code) {
  throw Error::of_system(ErrorKind::Runtime, cat("cannot link kernels: ", what), code);
}

}  // namespace

OutputPipe::OutputPipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe", errno);
  read_end_ = ends[0];
  write_end_ = ends[1];
  try {
    reader_ = std::thread([this] { read_all(); });
  } catch (const std::system_error& error) {
    close(read_end_);
    close(write_end_);
    fail("no thread", error.code().value());
  }
}

OutputPipe::~OutputPipe() {
  finish();
  close(read_end_);
}

std::string OutputPipe::path() const {
  return cat("/proc/self/fd/", write_end_);
}

std::vector<uint8_t> OutputPipe::take() {
  finish();
  if (error_) std::rethrow_exception(error_);
  return std::move(bytes_);
}

void OutputPipe::finish() {
  if (write_end_ < 0) return;
  close(std::exchange(write_end_, -1));
  reader_.join();
}

// Reads to the end in any case: otherwise a writer would wait for a reader that stopped.
void OutputPipe::read_all() noexcept {
  uint8_t buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(read_end_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    try {
      if (!error_) bytes_.insert(bytes_.end(), buffer, buffer + n);
    } catch (...) {
      error_ = std::current_exception();
    }
  }
}

}  // namespace tenon::codegen

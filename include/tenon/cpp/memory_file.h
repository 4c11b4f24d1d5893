// A file in memory. Included by tenon/tenon.h.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace tenon {
inline namespace v1 {
namespace detail {

/// A file in memory without a name, for a compiled program: what maps it keeps its pages, which
/// hold a large model's weights once. Throws std::system_error.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("tenon", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  /// To open it by, within this process, for as long as this object lives.
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  const int descriptor_;
};

}  // namespace detail
}  // namespace v1
}  // namespace tenon

#include "vm/executable/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "support/error.h"
#include "support/text.h"
#include "vm/executable/file_format.h"

namespace tenon::vm {

FileBytes::~FileBytes() {
  if (memory == Memory::Mapped && size) munmap(const_cast<char*>(data), size);
  if (memory == Memory::Allocated) std::free(const_cast<char*>(data));
}

namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int code) {
  throw Error(ErrorKind::Usage, cat(path, ": ", what, ": ", std::strerror(code)));
}

// A regular file, open for reading.
struct OpenFile {
  explicit OpenFile(const std::string& path)
      // O_NONBLOCK: opening a named pipe must not wait for a writer.
      : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd < 0) fail(path, "can't be opened", errno);
    struct stat status {};
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
      close(fd);
      throw Error(ErrorKind::Usage, cat(path, ": not a regular file"));
    }
    size = static_cast<size_t>(status.st_size);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(fd); }

  int fd;
  size_t size = 0;
};

// Allocates at least one byte, aligned like a file's sections.
char* allocate(size_t size) {
  void* memory = std::aligned_alloc(kFileAlignment, align_up(size + 1));
  if (!memory) throw Error(ErrorKind::Runtime, cat("no memory for ", size, " bytes"));
  return static_cast<char*>(memory);
}

}  // namespace

Ref<FileBytes> map_file(const std::string& path) {
  const OpenFile in(path);
  auto file = make<FileBytes>();
  if (in.size == 0) return file;
  void* memory = mmap(nullptr, in.size, PROT_READ, MAP_PRIVATE, in.fd, 0);
  if (memory == MAP_FAILED) fail(path, "can't be mapped", errno);
  file->data = static_cast<const char*>(memory);
  file->size = in.size;
  file->memory = FileBytes::Memory::Mapped;
  return file;
}

Ref<FileBytes> read_whole_file(const std::string& path, WorkBudget* budget) {
  const OpenFile in(path);
  if (budget) budget->allocate(in.size);
  auto file = make<FileBytes>();
  char* memory = allocate(in.size);
  file->data = memory;
  file->memory = FileBytes::Memory::Allocated;
  constexpr size_t kPart = 8 << 20;  // takes a few milliseconds
  while (file->size < in.size) {
    const ssize_t n = read(in.fd, memory + file->size, std::min(kPart, in.size - file->size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "can't be read", errno);
    if (n == 0) break;  // the file was truncated: the reader will report it as damaged
    file->size += static_cast<size_t>(n);
    if (budget) budget->poll();
  }
  return file;
}

Ref<FileBytes> copy_bytes(std::string_view bytes) {
  auto file = make<FileBytes>();
  char* memory = allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  file->data = memory;
  file->size = bytes.size();
  file->memory = FileBytes::Memory::Allocated;
  return file;
}

Ref<FileBytes> borrow_bytes(std::string_view bytes, Ref<Object> owner) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kFileAlignment) return copy_bytes(bytes);
  auto file = make<FileBytes>();
  file->data = bytes.data();
  file->size = bytes.size();
  file->owner = std::move(owner);
  return file;
}

}  // namespace tenon::vm

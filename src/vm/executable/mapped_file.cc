#include "vm/executable/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

Ref<FileBytes> map_file(const std::string& path) {
  auto fail = [&](const char* what) {
    int code = errno;
    throw Error(ErrorKind::Usage, cat(path, ": ", what, ": ", std::strerror(code)));
  };
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail("can't be opened");
  auto file = make<FileBytes>();
  struct stat status {};
  bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    close(fd);
    throw Error(ErrorKind::Usage, cat(path, ": is no regular file"));
  }
  file->size = static_cast<size_t>(status.st_size);
  if (file->size) {
    void* memory = mmap(nullptr, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    int code = errno;
    close(fd);
    errno = code;
    if (memory == MAP_FAILED) fail("can't be mapped");
    file->data = static_cast<const char*>(memory);
    file->memory = FileBytes::Memory::Mapped;
  } else {
    close(fd);
  }
  return file;
}

Ref<FileBytes> copy_bytes(std::string_view bytes) {
  auto file = make<FileBytes>();
  void* memory = std::aligned_alloc(kFileAlignment, align_up(bytes.size() + 1));
  if (!memory) throw Error(ErrorKind::Runtime, cat("no memory for ", bytes.size(), " bytes"));
  std::memcpy(memory, bytes.data(), bytes.size());
  file->data = static_cast<const char*>(memory);
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

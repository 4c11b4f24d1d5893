#include "vm/executable/mapped_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device/call_context.h"
#include "support/bulk.h"
#include "support/error.h"
#include "support/input_file.h"
#include "support/text.h"
#include "vm/executable/file_format.h"

namespace tenon::vm {

namespace {

// Allocates at least one byte, aligned like a file's sections.
char* allocate(size_t size) {
  void* memory = std::aligned_alloc(kFileAlignment, align_up(size + 1));
  if (!memory) throw Error(ErrorKind::Runtime, cat("no memory for ", size, " bytes"));
  return static_cast<char*>(memory);
}

}  // namespace

Ref<FileBytes> map_file(const std::string& path) {
  InputFile in(path);
  auto file = make<FileBytes>();
  file->data = static_cast<const char*>(in.map());
  file->size = in.size();
  file->memory = FileBytes::Memory::Mapped;
  if (begins_like_elf(file->view())) file->descriptor = in.release();
  return file;
}

Ref<FileBytes> read_whole_file(const std::string& path) {
  InputFile in(path);
  charge(in.size());
  auto file = make<FileBytes>();
  char* memory = allocate(in.size());
  file->data = memory;
  while (file->size < in.size()) {
    const size_t n = in.read(memory + file->size, std::min(kPollBytes, in.size() - file->size));
    if (n == 0) break;  // the file was truncated: the reader will report it as damaged
    file->size += n;
    poll();
  }
  return file;
}

Ref<FileBytes> copy_bytes(std::string_view bytes) {
  auto file = make<FileBytes>();
  char* memory = allocate(bytes.size());
  file->data = memory;
  file->size = bytes.size();
  copy_memory(memory, bytes.data(), bytes.size());
  return file;
}

}  // namespace tenon::vm

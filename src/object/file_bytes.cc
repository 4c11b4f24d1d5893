#include "object/file_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace tenon {
namespace {

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; older kernels refuse it
#endif

// A view has its tensor as its owner.
bool is_in_mapped_file(const Tensor& tensor) {
  const Object* owner = tensor->owner.get();
  while (owner && owner->type_index == TypeIndex::Tensor) {
    owner = static_cast<const TensorObj*>(owner)->owner.get();
  }
  return owner && owner->type_index == TypeIndex::VmFileBytes &&
         static_cast<const FileBytes*>(owner)->memory == FileBytes::Memory::Mapped;
}

void advise_mapped(const void* data, size_t size, PageAdvice advice) {
  const auto page = static_cast<uintptr_t>(getpagesize());
  const auto first = reinterpret_cast<uintptr_t>(data);
  const uintptr_t end = first + size;
  // Pages that hold other bytes, too, aren't done with.
  const bool done = advice == PageAdvice::Done;
  const uintptr_t begin = (done ? first + page - 1 : first) / page * page;
  const uintptr_t stop = (done ? end : end + page - 1) / page * page;
  if (begin >= stop) return;
  madvise(reinterpret_cast<void*>(begin), stop - begin, done ? MADV_DONTNEED : MADV_POPULATE_READ);
}

}  // namespace

FileBytes::~FileBytes() {
  if (memory == Memory::Allocated) {
    std::free(const_cast<char*>(data));
  } else if (size) {
    munmap(const_cast<char*>(data), size);
  }
  if (descriptor >= 0) close(descriptor);
}

[[gnu::cold]] void advise(const FileBytes& file, PageAdvice advice) {
  if (file.memory == FileBytes::Memory::Mapped) advise_mapped(file.data, file.size, advice);
}

[[gnu::cold]] void advise(const Tensor& tensor, PageAdvice advice) {
  if (!is_in_mapped_file(tensor)) return;
  advise_mapped(tensor.data(), static_cast<size_t>(tensor.bytes()), advice);
}

}  // namespace tenon

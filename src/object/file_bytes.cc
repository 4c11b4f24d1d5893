#include "object/file_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "support/pages.h"

namespace tenon {

FileBytes::~FileBytes() {
  if (memory == Memory::Allocated) {
    std::free(const_cast<char*>(data));
  } else if (size) {
    munmap(const_cast<char*>(data), size);
  }
  if (descriptor >= 0) close(descriptor);
}

void FileBytes::release_pages() const {
  if (memory == Memory::Mapped && size) madvise(const_cast<char*>(data), size, MADV_DONTNEED);
}

const FileBytes* mapped_file_of(const Tensor& tensor) {
  const Object* owner = tensor->owner.get();
  // A view's owner is its tensor, which has no owner that we know if another library made it.
  while (owner && owner->type_index == TypeIndex::Tensor && owner->deleter == tensor->deleter) {
    owner = static_cast<const TensorObj*>(owner)->owner.get();
  }
  if (!owner || owner->type_index != TypeIndex::VmFileBytes) return nullptr;
  const auto* file = static_cast<const FileBytes*>(owner);
  return file->memory == FileBytes::Memory::Mapped ? file : nullptr;
}

void map_pages(const Tensor& tensor) {
  if (mapped_file_of(tensor)) populate_pages(tensor.data(), static_cast<size_t>(tensor.bytes()));
}

void release_pages(const Tensor& tensor) {
  if (!mapped_file_of(tensor)) return;
  const auto data = reinterpret_cast<uintptr_t>(tensor.data());
  const uintptr_t begin = (data + kPageBytes - 1) & ~(kPageBytes - 1),
                  end = (data + static_cast<uintptr_t>(tensor.bytes())) & ~(kPageBytes - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace tenon

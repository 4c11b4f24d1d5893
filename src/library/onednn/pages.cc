#include "library/onednn/pages.h"

#include <sys/mman.h>

#include "object/file_bytes.h"

namespace tenon::onednn {
namespace {

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; older kernels refuse it
#endif

constexpr uintptr_t kPage = 4096;  // a system with larger ones refuses parts of them

// A view has its tensor as its owner.
bool is_in_mapped_file(const Tensor& tensor) {
  const Object* owner = tensor->owner.get();
  while (owner && owner->type_index == TypeIndex::Tensor) {
    owner = static_cast<const TensorObj*>(owner)->owner.get();
  }
  return owner && owner->type_index == TypeIndex::VmFileBytes &&
         static_cast<const FileBytes*>(owner)->memory == FileBytes::Memory::Mapped;
}

void advise(uintptr_t begin, uintptr_t end, int advice) {
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

}  // namespace

void map_pages(const Tensor& constant) {
  if (!is_in_mapped_file(constant)) return;
  const auto begin = reinterpret_cast<uintptr_t>(constant.data());
  advise(begin & ~(kPage - 1), begin + static_cast<uintptr_t>(constant.bytes()),
         MADV_POPULATE_READ);
}

// But not those that hold other bytes, too.
void release_pages(const Tensor& constant) {
  if (!is_in_mapped_file(constant)) return;
  const auto begin = reinterpret_cast<uintptr_t>(constant.data());
  const uintptr_t end = begin + static_cast<uintptr_t>(constant.bytes());
  advise((begin + kPage - 1) & ~(kPage - 1), end & ~(kPage - 1), MADV_DONTNEED);
}

}  // namespace tenon::onednn

#include "library/onednn/pages.h"

#include "object/file_bytes.h"
#include "support/pages.h"

namespace tenon::onednn {
namespace {

// A view has its tensor as its owner.
bool is_in_mapped_file(const Tensor& tensor) {
  const Object* owner = tensor->owner.get();
  while (owner && owner->type_index == TypeIndex::Tensor) {
    owner = static_cast<const TensorObj*>(owner)->owner.get();
  }
  return owner && owner->type_index == TypeIndex::VmFileBytes &&
         static_cast<const FileBytes*>(owner)->memory == FileBytes::Memory::Mapped;
}

}  // namespace

void map_pages(const Tensor& constant) {
  if (!is_in_mapped_file(constant)) return;
  populate_pages(constant.data(), static_cast<size_t>(constant.bytes()));
}

// But not those that hold other bytes, too.
void release_pages(const Tensor& constant) {
  if (!is_in_mapped_file(constant)) return;
  const auto data = reinterpret_cast<uintptr_t>(constant.data());
  const uintptr_t begin = (data + kPageBytes - 1) & ~(kPageBytes - 1),
                  end = (data + static_cast<uintptr_t>(constant.bytes())) & ~(kPageBytes - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace tenon::onednn

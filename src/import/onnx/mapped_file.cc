#include "import/onnx/mapped_file.h"

#include <sys/mman.h>

#include "support/input_file.h"

namespace tenon::onnx {

Ref<StorageObj> map_file(const std::string& path) {
  const InputFile file(path);
  auto storage = make<StorageObj>();
  storage->flags = StorageObj::kIsReadOnly;
  storage->data = const_cast<void*>(file.map());
  storage->size = file.size();
  if (storage->data) storage->free = [](StorageObj* self) { ::munmap(self->data, self->size); };
  return storage;
}

}  // namespace tenon::onnx

#include "library/onednn/workspace.h"

#include <memory>

#include "library/onednn/packed_weights.h"

namespace tenon::onednn {

Counted::Counted(size_t bytes) : call_(CallContext::current()), bytes_(bytes) {
  if (call_ && bytes_ > 0 && !call_->count_memory(bytes_)) call_->fail_memory(bytes_);
}

Counted::~Counted() {
  if (call_ && bytes_ > 0) call_->discount_memory(bytes_);
}

void* scratch(size_t bytes) {
  thread_local std::shared_ptr<void> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    memory = allocate(bytes);
    size = bytes;
  }
  return memory.get();
}

}  // namespace tenon::onednn

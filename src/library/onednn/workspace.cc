#include "library/onednn/workspace.h"

#include <cstring>
#include <memory>

#include "library/onednn/packed_weights.h"

namespace tenon::onednn {

Counted::Counted(size_t bytes) : call_(CallContext::current()), bytes_(bytes) {
  if (call_ && bytes_ > 0 && !call_->count_memory(bytes_)) call_->fail_memory(bytes_);
}

Counted::~Counted() {
  if (call_ && bytes_ > 0) call_->discount_memory(bytes_);
}

namespace {

struct Scratch {
  std::shared_ptr<void> memory;
  size_t size = 0;

  // Whether that was new memory.
  bool grow_to(size_t bytes) {
    if (bytes <= size) return false;
    memory = allocate(bytes);
    size = bytes;
    return true;
  }
};

thread_local Scratch own;

}  // namespace

void* scratch(size_t bytes) {
  own.grow_to(bytes);
  return own.memory.get();
}

void prepare_scratch(size_t bytes) {
  const Counted counted(bytes);
  if (own.grow_to(bytes)) std::memset(own.memory.get(), 0, bytes);
}

}  // namespace tenon::onednn

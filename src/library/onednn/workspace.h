// Memory that a call needs while it runs.
#pragma once

#include <cstddef>

#include "device/call_context.h"

namespace tenon::onednn {

// Bytes that count towards the memory limit of the call. Throws Runtime if it is exceeded.
class Counted {
 public:
  explicit Counted(size_t bytes);
  ~Counted();
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  CallContext* const call_;
  const size_t bytes_;
};

// This thread's scratch memory, which grows as needed and is valid until the thread's next call.
// Aligned to 64 bytes.
void* scratch(size_t bytes);
// Allocates and maps this thread's scratch memory ahead of a call that needs that many bytes.
void prepare_scratch(size_t bytes);

}  // namespace tenon::onednn

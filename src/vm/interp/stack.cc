#include "vm/interp/stack.h"

#include <sys/mman.h>

#include <utility>

#include "support/error.h"
#include "support/text.h"

namespace tenon::vm {
namespace {
constexpr size_t kPage = 4096;
}

Reservation::Reservation(size_t bytes) : size_((bytes + kPage - 1) / kPage * kPage) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorKind::Runtime, cat("no address space for a stack of ", size_, " bytes"));
  }
  begin_ = static_cast<char*>(memory);
}

Reservation::Reservation(Reservation&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  return *this;
}

Reservation::~Reservation() {
  if (begin_) munmap(begin_, size_);
}

void Reservation::discard(size_t from) const {
  from = (from + kPage - 1) / kPage * kPage;
  if (from < size_) madvise(begin_ + from, size_ - from, MADV_DONTNEED);
}

void Reservation::discard_before(size_t to) const {
  to = to / kPage * kPage;
  if (to) madvise(begin_, to, MADV_DONTNEED);
}

}  // namespace tenon::vm

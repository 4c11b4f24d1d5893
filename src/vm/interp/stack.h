// Address space for a machine's stack: reserved up front, committed when touched, never moved.
// Fresh pages are zero, which reads as None in every register.
#pragma once

#include <cstddef>

namespace tenon::vm {

class Reservation {
 public:
  Reservation() = default;
  explicit Reservation(size_t bytes);  // a Runtime error if the system refuses
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  char* begin() const { return begin_; }
  char* end() const { return begin_ + size_; }
  size_t size() const { return size_; }
  // Returns the pages from byte `from` to the end to the system; they read as zeros again.
  void discard(size_t from) const;
  // The same for the pages of bytes 0 to `to`.
  void discard_before(size_t to) const;

 private:
  char* begin_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tenon::vm

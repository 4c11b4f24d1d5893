// NestedCall: bounds calls into the runtime that run within each other on one thread, such as those
// of a host's function that calls itself. Without a bound they would overflow the native stack.
#pragma once

#include <cstddef>

namespace tenon {

class NestedCall {
 public:
  // `depth` counts the calls of one kind that run on this thread. Throws Runtime if there are
  // already 200, or if fewer than `stack` bytes of the native stack are left.
  NestedCall(int* depth, size_t stack);
  ~NestedCall() { --*depth_; }
  NestedCall(const NestedCall&) = delete;
  NestedCall& operator=(const NestedCall&) = delete;

 private:
  int* depth_;
};

}  // namespace tenon

// Preparation: making what functions keep for later calls, such as packed weights, and mapping the
// memory that they use, before the first call. A machine runs the program for it, without kernels
// and without functions that don't prepare (FunctionFlags::prepares). A function that does makes
// what its arguments' shapes and its constants determine, and computes nothing: other arguments
// hold zeros, its results are never read.
#pragma once

namespace tenon {

// Whether this thread's calls only prepare.
bool is_preparing();
void set_preparing(bool preparing);

class PreparationScope {
 public:
  PreparationScope() : outer_(is_preparing()) { set_preparing(true); }
  ~PreparationScope() { set_preparing(outer_); }
  PreparationScope(const PreparationScope&) = delete;
  PreparationScope& operator=(const PreparationScope&) = delete;

 private:
  const bool outer_;
};

}  // namespace tenon

// CountedBytes: memory besides objects, such as a container's, that counts for the thread's
// ObjectBudget while this lives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "object/object_budget.h"

namespace tenon {

class CountedBytes {
 public:
  // Throws what a budget fails with that has less left. Without a budget nothing is counted.
  explicit CountedBytes(size_t bytes) : bytes_(bytes) {
    if (ObjectBudget* budget = detail::object_budget) {
      budget->take(bytes);
      budget_ = budget->number();
    }
  }
  ~CountedBytes() {
    if (budget_) ObjectBudget::give_back(budget_, bytes_);
  }
  CountedBytes(const CountedBytes&) = delete;
  CountedBytes& operator=(const CountedBytes&) = delete;

 private:
  size_t bytes_;
  uint32_t budget_ = 0;
};

}  // namespace tenon

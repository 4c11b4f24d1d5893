// The sum of many sizes, in time proportional to their length: `a + b` canonicalises each time.
#pragma once

#include <vector>

#include "loop/dim.h"

namespace tenon {

class DimSum {
 public:
  // Adds scale * d.
  void add(const Dim& d, int64_t scale = 1) { parts_.push_back({d, scale}); }
  // Throws a Usage error as construction does (loop/dim.h).
  Dim total() const;

 private:
  struct Part {
    Dim size;
    int64_t scale;
  };
  std::vector<Part> parts_;
};

}  // namespace tenon

// Sizes as keys of unordered containers.
#pragma once

#include "loop/dim.h"

namespace tenon {

struct DimHash {
  size_t operator()(const Dim& dim) const { return hash(dim); }
};

}  // namespace tenon

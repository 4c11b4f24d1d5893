// Storages for a function's values of symbolic size, which take turns in them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "graph/pass/lifetimes.h"

namespace tenon::graph {

struct SharedStorages {
  // A storage that is allocated elsewhere than it was: before a loop.
  struct Moved {
    const Var* storage;
    Dim bytes;
    const Binding* before;
  };
  // The storage that takes another's place: an earlier one, or itself if it is moved.
  std::unordered_map<const Var*, const Var*> replaced_by;
  std::vector<Moved> moved;
};

// Lets each value on the device reuse the storage of a dead one that is provably as large.
SharedStorages share_storages(const Lifetimes& lifetimes, int64_t device);

}  // namespace tenon::graph

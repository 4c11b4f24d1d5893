// Which tensors a function's block allocates for the function's results, so that they can be made
// in memory of the host (the instruction alloc_result).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/module.h"

namespace tenon::codegen {

struct ResultTensors {
  // The result's index, by the variable of its tensor.
  std::unordered_map<const graph::Var*, int64_t> index;
  // Their storages, which hold nothing else and aren't allocated.
  std::unordered_set<const graph::Var*> storages;
};

// A result counts if the body's own block allocates it, as a tensor that is a storage of its own on
// the host; it may be a view of that. What a branch, a loop or a callee makes doesn't.
ResultTensors result_tensors(const graph::FunctionExpr& function);

}  // namespace tenon::codegen

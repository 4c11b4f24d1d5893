// Attention as models spell it out: two matrix products with a softmax between them.
#pragma once

#include <unordered_map>
#include <vector>

#include "graph/ir/use_def.h"

namespace tenon::graph {

// transpose(softmax(scale * (q @ k) + mask, axis = -1) @ v, out_perm), all of f32 and of one rank,
// 3 or 4. The mask is null if there is none. Scores that are scaled twice aren't matched: one
// product of both factors would overflow elsewhere.
struct AttentionMatch {
  Operand q, k, v, mask;  // of the function
  double scale = 1;
  std::vector<int64_t> out_perm;
  std::vector<const Var*> inner;  // what nothing else uses
  Span span;                      // of all calls that are replaced
};

// All that the function has, by the variable of the last call.
std::unordered_map<const Var*, AttentionMatch> find_attention(const FunctionRef& function,
                                                              const UseDef& use_def);

}  // namespace tenon::graph

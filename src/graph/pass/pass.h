// What every pass sees: `Module pass(const Module&, PassContext&)`, one per file, listed in
// passes.def. Passes are pure: they return another module and keep nothing between runs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/ir/interfaces.h"
#include "graph/ir/module.h"
#include "loop/tiling.h"

namespace tenon::graph {

struct PassContext {
  loop::TargetFacts target;  // the lowest CPU that code is made for
  int level =
      2;  // -O: 0 nothing that can be left out, 1 simplify and fold, 2 and 3 fuse and lay out
  int64_t fold_limit = int64_t{1} << 30;  // bytes that folding may make
  Evaluator* evaluator = nullptr;         // null: nothing is folded
  std::vector<Offer*> offers;             // in order of preference
};

using PassFn = Module (*)(const Module&, PassContext&);

struct Pass {
  const char* name;  // the flag: --dump-after=NAME
  int min_level;     // the least -O that runs it
  const char* summary;
  PassFn run;
};

// All passes in the order of passes.def, which is the order they run in.
const std::vector<Pass>& all_passes();
const Pass* find_pass(std::string_view name);  // null: unknown

}  // namespace tenon::graph

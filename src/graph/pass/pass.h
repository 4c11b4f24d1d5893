// Passes are functions `Module pass(const Module&, PassContext&)`, one per file, listed in
// passes.def. They are pure: they return a new module and keep no state between runs.
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
#define TENON_PASS_OPTION(type, name) type name = {};
#include "graph/pass/pass_options.def"
  Evaluator* evaluator = nullptr;  // null: no folding
  std::vector<Offer*> offers;      // in order of preference

  // The constants that passes have packed in panels for `target`, which they count.
  int64_t packed_constants = 0;
};

using PassFn = Module (*)(const Module&, PassContext&);

struct Pass {
  const char* name;  // the flag: --dump-after=NAME
  int min_level;     // the lowest -O that runs it
  const char* summary;
  PassFn run;
};

// All passes in the order of passes.def, in which they run.
const std::vector<Pass>& all_passes();
const Pass* find_pass(std::string_view name);  // null if unknown

}  // namespace tenon::graph

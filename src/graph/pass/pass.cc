#include "graph/pass/pass.h"

namespace tenon::graph {

// Each is also declared in a header of its own, for those that call it directly.
#define TENON_PASS(function, ...) Module function(const Module& module, PassContext& cx);
#include "graph/pass/passes.def"
#undef TENON_PASS

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = {
#define TENON_PASS(function, name, min_level, summary) {name, min_level, summary, &function},
#include "graph/pass/passes.def"
#undef TENON_PASS
  };
  return passes;
}

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : all_passes()) {
    if (name == pass.name) return &pass;
  }
  return nullptr;
}

}  // namespace tenon::graph

#include "graph/pass/pass.h"

#include "graph/pass/call_known_functions.h"
#include "graph/pass/call_scalar_kernels.h"
#include "graph/pass/choose_layouts.h"
#include "graph/pass/clear_elements.h"
#include "graph/pass/combine_layer_norm.h"
#include "graph/pass/fold_batch_norm.h"
#include "graph/pass/fold_constants.h"
#include "graph/pass/fuse_loops.h"
#include "graph/pass/fuse_operators.h"
#include "graph/pass/gather_fields.h"
#include "graph/pass/group_calls.h"
#include "graph/pass/inline_functions.h"
#include "graph/pass/lambda_lift.h"
#include "graph/pass/lower_to_kernels.h"
#include "graph/pass/make_allocation_explicit.h"
#include "graph/pass/materialize_values.h"
#include "graph/pass/pack_constants.h"
#include "graph/pass/pack_integer_products.h"
#include "graph/pass/partition_to_offers.h"
#include "graph/pass/plan_memory.h"
#include "graph/pass/quantise_operators.h"
#include "graph/pass/remove_dead_code.h"
#include "graph/pass/scalarise.h"
#include "graph/pass/simplify.h"
#include "graph/pass/slice_splits.h"
#include "graph/pass/specialise_functions.h"

namespace tenon::graph {

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

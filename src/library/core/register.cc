#include "library/core/register.h"

#include "library/core/append.h"
#include "library/core/boxes.h"
#include "library/core/search.h"
#include "library/core/sizes.h"
#include "object/registry.h"

namespace tenon {

void register_core_library() {
  static const bool done = [] {
    const FunctionFlags flags{.for_files = true, .no_retain = true};
    register_typed("tenon.nonzero", core::nonzero, flags);
    register_typed("tenon.topk", core::topk, flags);
    register_typed("tenon.compress", core::compress, flags);
    register_typed("tenon.unique", core::unique, flags);
    register_typed("tenon.non_max_suppression", core::non_max_suppression, flags);
    register_function("tenon.append", core::append_function(), flags);
    register_typed("tenon.shape.reshape", core::reshape_sizes, flags);
    register_typed("tenon.shape.slice", core::slice_bounds, flags);
    register_typed("tenon.shape.range_count", core::range_count, flags);
    return true;
  }();
  (void)done;
}

}  // namespace tenon

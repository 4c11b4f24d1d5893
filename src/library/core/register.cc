#include "library/core/register.h"

#include "library/core/append.h"
#include "library/core/boxes.h"
#include "library/core/search.h"
#include "library/core/sizes.h"
#include "object/registry.h"

namespace tenon {

void register_core_library() {
  static const bool done = [] {
    const FunctionFlags flags{.for_files = true};
    Registration library;
    library.add_typed("tenon.nonzero", core::nonzero, flags);
    library.add_typed("tenon.topk", core::topk, flags);
    library.add_typed("tenon.compress", core::compress, flags);
    library.add_typed("tenon.unique", core::unique, flags);
    library.add_typed("tenon.non_max_suppression", core::non_max_suppression, flags);
    library.add("tenon.append", core::append_function(), flags);
    library.add_typed("tenon.shape.reshape", core::reshape_sizes, flags);
    library.add_typed("tenon.shape.slice", core::slice_bounds, flags);
    library.add_typed("tenon.shape.range_count", core::range_count, flags);
    library.commit();
    return true;
  }();
  (void)done;
}

}  // namespace tenon

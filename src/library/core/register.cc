#include "library/core/register.h"

#include "library/core/append.h"
#include "library/core/boxes.h"
#include "library/core/search.h"
#include "library/core/sizes.h"
#include "library/signatures/signatures.h"

namespace tenon {

void register_core_library() {
  static const bool done = [] {
    Registration functions;
    library::add_typed(functions, library::signature("tenon.nonzero"), core::nonzero);
    library::add_typed(functions, library::signature("tenon.topk"), core::topk);
    library::add_typed(functions, library::signature("tenon.compress"), core::compress);
    library::add_typed(functions, library::signature("tenon.unique"), core::unique);
    library::add_typed(functions, library::signature("tenon.non_max_suppression"),
                       core::non_max_suppression);
    library::add(functions, library::signature("tenon.append"), core::append_function());
    library::add_typed(functions, library::signature("tenon.shape.reshape"), core::reshape_sizes);
    library::add_typed(functions, library::signature("tenon.shape.slice"), core::slice_bounds);
    library::add_typed(functions, library::signature("tenon.shape.range_count"), core::range_count);
    functions.commit();
    return true;
  }();
  (void)done;
}

}  // namespace tenon

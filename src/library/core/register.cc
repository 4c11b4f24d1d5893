#include "library/core/register.h"

#include "library/core/functions.h"

namespace tenon {

void register_core_library() {
  static const bool done = [] {
    Registration functions;
    core::register_append(functions);
    core::register_sizes(functions);
    functions.commit();
    return true;
  }();
  (void)done;
}

}  // namespace tenon

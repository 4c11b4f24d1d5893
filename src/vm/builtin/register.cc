#include "vm/builtin/register.h"

#include "library/core/register.h"
#include "vm/builtin/functions.h"

namespace tenon::vm {

void register_builtins() {
  static const bool done = [] {
    register_core_library();
    Registration functions;
    register_arrays(functions);
    register_tensors(functions);
    register_strings(functions);
    register_returned(functions);
    functions.commit();
    return true;
  }();
  (void)done;
}

}  // namespace tenon::vm

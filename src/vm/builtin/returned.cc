// Checks what a function of the host returned. Instructions match tensors, shapes and numbers.
#include "vm/builtin/functions.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {

void register_returned(Registration& functions) {
  library::add_typed(
      functions, library::signature("vm.check_returned"),
      +[](const Any& value, const String& type, const String& function) {
        require_returned(function.view(), parse_signature_type(type.view()), value,
                         "a value that doesn't fit its declared type");
      });
}

}  // namespace tenon::vm

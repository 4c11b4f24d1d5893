// Checks what a function of the host returned. Instructions match tensors, shapes and numbers.
#include "object/string.h"
#include "vm/builtin/functions.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {
namespace {

void check_returned(const library::PlainFunction&, const AnyView* args, Any*) {
  require_returned(payload_as<String>(args[2]), parse_signature_type(payload_as<String>(args[1])),
                   args[0], kOfDeclaredType);
}

}  // namespace

void register_returned(Registration& functions) {
  library::add_plain(functions, library::signature("vm.check_returned"), check_returned,
                     library::kArgumentTypes<Any, String, String>);
}

}  // namespace tenon::vm

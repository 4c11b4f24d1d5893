// Checks what a function of the host returned. Instructions match tensors, shapes and numbers of 64
// bits that aren't in tuples.
#include "object/string.h"
#include "vm/builtin/functions.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {
namespace {

struct OwnedType : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque;

  SignatureType type;
};

void check_returned(const library::PlainFunction&, const AnyView* args, Any* result) {
  auto owner = make<OwnedType>();
  owner->type = parse_signature_type(payload_as<String>(args[1]));
  *result = Any(args[0]);
  conform(owner->type, owner, result);
  require_returned(payload_as<String>(args[2]), owner->type, *result, kMisfitsDeclaration);
}

}  // namespace

void register_returned(Registration& functions) {
  library::add_plain(functions, library::signature("vm.check_returned"), check_returned,
                     library::kArgumentTypes<Any, String, String>);
}

}  // namespace tenon::vm

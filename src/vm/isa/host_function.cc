#include "vm/isa/host_function.h"

#include "object/array.h"
#include "object/tensor.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {
namespace {

struct HostFunction : FunctionObj {
  Function function;
  const SignatureType* result = nullptr;
  Ref<const Object> owner;  // of the type

  static int call_held(void* self, const AnyView* args, int32_t n, Any* result) {
    const auto& host = *static_cast<const HostFunction*>(static_cast<FunctionObj*>(self));
    const SignatureType& type = *host.result;
    try {
      Any found;
      if (const int failed = host.function.call(args, n, &found)) return failed;
      const bool is_unit = type.kind == SignatureType::Kind::Tuple && type.parts.empty();
      if (is_unit) return 0;
      found = admit(found);
      conform(type, host.owner, &found);
      require_returned("", type, found, kMisfitsDeclaration);
      *result = std::move(found);
      return 0;
    } catch (...) {
      return set_current_exception();
    }
  }
};

}  // namespace

Function held_to(const SignatureType& type, const Ref<const Object>& owner,
                 const Function& function) {
  const SignatureType& result = type.parts.back();
  const bool is_program = !name_of(Any(function)).empty();
  if (is_program || result.kind == SignatureType::Kind::Any) return function;
  auto made = make<HostFunction>();
  made->call = &HostFunction::call_held;
  made->function = function;
  made->result = &result;
  made->owner = owner;
  return Function::adopt(std::move(made));
}

}  // namespace tenon::vm

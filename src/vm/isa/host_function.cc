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

// Whether code that relies on a result of the type `wanted` needs no check of one that a program's
// function declares as `declared`: code matches tensors and shapes itself.
bool is_as_declared(const SignatureType& declared, const SignatureType& wanted) {
  using Kind = SignatureType::Kind;
  if (wanted.kind == Kind::Any) return true;
  if (declared.kind != wanted.kind || declared.parts.size() != wanted.parts.size()) return false;
  if (wanted.kind == Kind::Tensor || wanted.kind == Kind::Shape) return true;
  if (declared.dtype != wanted.dtype || declared.name != wanted.name) return false;
  // Of functions, what they return.
  size_t i = wanted.kind == Kind::Function ? wanted.parts.size() - 1 : 0;
  while (i < wanted.parts.size() && is_as_declared(declared.parts[i], wanted.parts[i])) ++i;
  return i == wanted.parts.size();
}

}  // namespace

Function held_to(const SignatureType& type, const Ref<const Object>& owner,
                 const Function& function) {
  const SignatureType& result = type.parts.back();
  const FunctionObj* given = function.get();
  if (given->is_ours() && given->info && given->info->result &&
      is_as_declared(given->info->result(*given), result)) {
    return function;
  }
  if (result.kind == SignatureType::Kind::Any) return function;
  auto made = make<HostFunction>();
  made->call = &HostFunction::call_held;
  // Held to one type at a time, however often it crosses the border.
  const bool is_held = given->call == &HostFunction::call_held;
  made->function = is_held ? static_cast<const HostFunction*>(given)->function : function;
  made->result = &result;
  made->owner = owner;
  return Function::adopt(std::move(made));
}

}  // namespace tenon::vm

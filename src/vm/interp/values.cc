#include "vm/interp/values.h"

#include <algorithm>

#include "object/reflect.h"
#include "object/tensor.h"
#include "support/failures.h"
#include "support/text.h"
#include "vm/interp/machine.h"
#include "vm/interp/match_values.h"
#include "vm/interp/outputs.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {
namespace {

const FunctionUnit& unit_of(const FunctionObj& self) {
  const auto& closure = static_cast<const ClosureObj&>(self);
  return static_cast<const Program&>(*closure.program).function_unit(*closure.code);
}

constexpr FunctionInfo kClosureInfo = {
    [](const FunctionObj& self) -> std::string_view { return unit_of(self).name; },
    [](const FunctionObj& self) -> const SignatureType& { return unit_of(self).result; }};

}  // namespace

ClosureObj::~ClosureObj() {
  for (Any& capture : captures()) capture.~Any();
}

Ref<ClosureObj> ClosureObj::of(const Program& program, const FunctionCode& code, size_t captures,
                               Ref<const Account> account) {
  auto closure = make_with_tail<ClosureObj>(captures * sizeof(Any));
  closure->size = captures;
  for (Any& capture : closure->captures()) new (&capture) Any();
  closure->call = &call_packed;
  closure->info = &kClosureInfo;
  closure->program = Ref<Object>(const_cast<Program*>(&program));
  closure->account = std::move(account);
  closure->code = &code;
  return closure;
}

int ClosureObj::call_packed(void* self, const AnyView* args, int32_t n, Any* result) {
  try {
    auto* closure = static_cast<ClosureObj*>(static_cast<FunctionObj*>(self));
    *result = closure->call_from_host(std::span(args, static_cast<size_t>(n)));
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

ClosureObj* ClosureObj::of_program(const AnyView& value, const Program* program) {
  if (value.type_index != TypeIndex::Function) return nullptr;
  auto* function = static_cast<FunctionObj*>(value.v.object);
  if (function->call != &call_packed) return nullptr;
  auto* closure = static_cast<ClosureObj*>(function);
  return !program || closure->program.get() == program ? closure : nullptr;
}

bool ClosureObj::cancel() const {
  return account->calls.front()->interrupt();
}

void ClosureObj::request_check() const {
  account->calls.front()->request_check();
}

Function ClosureObj::bound(std::span<const AnyView> args) const {
  const auto& owner = static_cast<const Program&>(*program);
  const auto open = static_cast<size_t>(code->params) - size;
  if (args.size() > open) {
    throw_misuse("more arguments are bound than the function has parameters", cat(args.size()),
                 cat("at most ", open));
  }
  // As in a call: what holds arrays of functions may be copied.
  const WorkLimits limits = {.memory = account->limits.memory, .deadline = account->limits.deadline};
  const BudgetedWork work(limits, "binding", owner.name());
  const FunctionUnit& unit = owner.function_unit(*code);
  if (code->has_unmatched) check_unmatched(unit, size, args, owner.name());
  auto made = of(owner, *code, size + args.size(), account);
  auto to = std::ranges::copy(captures(), made->captures().begin()).out;
  for (const AnyView& arg : args) {
    *to = admit(arg);
    conform(unit.params[static_cast<size_t>(to - made->captures().begin())].type,
            Ref<const Object>(&owner), &*to);
    ++to;
  }
  return Function::adopt(std::move(made));
}

Any ClosureObj::call_into(std::span<const AnyView> args, std::span<const AnyView> outputs) {
  const std::span<Any> held = captures();
  std::vector<AnyView> inputs(held.begin(), held.end());
  inputs.insert(inputs.end(), args.begin(), args.end());
  Outputs given(static_cast<const Program&>(*program).function_unit(*code), outputs, inputs);
  return given.filled(call_from_host(args, &given));
}

Any ClosureObj::call_from_host(std::span<const AnyView> args, Outputs* outputs) {
  const auto& owner = static_cast<const Program&>(*program);
  Ref<Object> keep(this);
  if (Machine* current = Machine::current()) {
    return current->call_code(owner, *code, captures(), args, *account, outputs);
  }
  return owner.call_on_idle(*code, captures(), args, account, outputs);
}

}  // namespace tenon::vm

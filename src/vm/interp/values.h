// Closures: the values that only the machine makes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "object/function.h"
#include "object/object.h"
#include "object/tensor.h"
#include "vm/interp/account.h"

namespace tenon::vm {

struct FunctionCode;
class Outputs;
class Program;

// A function of a Program with its first arguments. It can be called as a Function: on this
// thread's current machine, within the call that runs there, or on an idle machine of the Program;
// in either case its account's limits apply.
struct ClosureObj : FunctionObj {
  Ref<Object> program;  // the Program
  Ref<const Account> account;
  const FunctionCode* code = nullptr;
  size_t size = 0;  // of the captures, which are stored behind the object

  std::span<Any> captures() { return {reinterpret_cast<Any*>(this + 1), size}; }
  std::span<const Any> captures() const { return {reinterpret_cast<const Any*>(this + 1), size}; }

  ~ClosureObj();
  size_t tail_bytes() const { return size * sizeof(Any); }

  // Captures are None until they are set; Function::adopt makes it a value.
  static Ref<ClosureObj> of(const Program& program, const FunctionCode& code, size_t captures,
                            Ref<const Account> account);
  // Called from outside of the dispatch loop; throws. `outputs` may be null.
  Any call_from_host(std::span<const AnyView> args, Outputs* outputs = nullptr);
  // The same, with the results in tensors of the caller: one or None for each result (outputs.h).
  Any call_into(std::span<const AnyView> args, std::span<const AnyView> outputs);
  // The function with its next parameters bound to these arguments. A Usage error if it has fewer.
  Function bound(std::span<const AnyView> args) const;
  // Stops the running calls of this function value and of others with its account, but not those
  // that its own machine makes; from any thread. Returns whether there were any.
  bool cancel() const;
  // Has the same calls ask the host (device/host_check.h) soon.
  void request_check() const;
  // The `call` of every closure, and of no other function.
  static int call_packed(void* self, const AnyView* args, int32_t n, Any* result);
  // The object as a closure of `program` (of any program if null), or null.
  static ClosureObj* of_program(const AnyView& value, const Program* program);
};

}  // namespace tenon::vm

// The values that only the machine makes: cells of algebraic data types, and closures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "object/array.h"
#include "object/function.h"
#include "object/object.h"
#include "vm/interp/account.h"

namespace tenon::vm {

// A constructor's tag and its fields.
struct AdtObj : Object {
  TENON_TYPE(TypeIndex::VmBegin + 1);
  int64_t tag = 0;
  Array<Any> fields;
};

struct FunctionCode;
class Program;

// A function of a Program with its first arguments. As a Function it can be called by anybody: on
// this thread's current machine, within the call that runs there, else on an idle one of the
// Program; always held to its account as well.
struct ClosureObj : FunctionObj {
  Ref<Object> program;  // the Program
  Ref<Account> account;
  const FunctionCode* code = nullptr;
  std::span<Any> captures;  // behind the object

  ~ClosureObj();
  size_t tail_bytes() const { return captures.size_bytes(); }

  // Its captures are None until they are set; Function::adopt makes it a value.
  static Ref<ClosureObj> of(const Program& program, const FunctionCode& code, size_t captures,
                            Ref<Account> account);
  // What a call from outside of the dispatch loop does; throws.
  Any call_from_host(std::span<const AnyView> args);
  // Stops the calls of this function value, and of those that they made, which run on machines that
  // the host doesn't have; from any thread. Whether there was one.
  bool cancel() const;
  // The object as a closure of `program` (of any when null), else null.
  static ClosureObj* of_program(const AnyView& value, const Program* program);
};

// Makes AdtObj known to printing, equality and JSON.
void register_vm_types();

}  // namespace tenon::vm

// The slow path's instructions on arrays: their size, and changes. dispatch.cc runs the change of
// an array that only its register refers to.
#include "object/array.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/operand_values.h"
#include "vm/interp/slow_path.h"

namespace tenon::vm::slow_path {
namespace {

const ArrayObj& elements(const ValueRef& ref, const AnyView* base, const char* what) {
  const AnyView view = unborrowed(value_of(ref, base));
  if (view.type_index != TypeIndex::Array) [[unlikely]]
    fail_type("an array", what, view);
  return *static_cast<const ArrayObj*>(view.v.object);
}

// Makes R[dst] the array with another element at the index, or behind its last.
void change_array(const Op& op, AnyView* base, int64_t index, const ValueRef& value) {
  auto array = Ref<Object>::adopt(object_of(taken(op.operands->args.front(), base)));
  const bool is_longer = index == static_cast<const ArrayObj*>(array.get())->size;
  ArrayObj* const changed = ArrayObj::own(&array, is_longer);
  if (is_longer) new (changed->begin() + changed->size++) Any();
  put_words(changed->begin()[index], taken(value, base));
  finish(op, base, std::move(array));
}

}  // namespace

void op_array_size(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ArraySize> in(op);
  finish(op, base, Any(elements(in["array"], base, in.mnemonic).size));
}

void op_array_set(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ArraySet> in(op);
  const int64_t index = integer(in["index"], base, in.mnemonic);
  const ArrayObj& array = elements(in["array"], base, in.mnemonic);
  if (index < 0 || index >= array.size) [[unlikely]]
    fail_index(index, array.size);
  change_array(op, base, index, in["value"]);
}

void op_array_push(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ArrayPush> in(op);
  change_array(op, base, elements(in["array"], base, in.mnemonic).size, in["value"]);
}

}  // namespace tenon::vm::slow_path

#include "vm/interp/slow_path.h"

#include "object/array.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/operand_values.h"
#include "vm/isa/opcode.h"

namespace tenon::vm::slow_path {
namespace {

Any scalar(int64_t v, bool is_bool) {
  return is_bool ? Any(v != 0) : Any(v);
}

bool has_boolean_result(BinaryResult result, const AnyView& a, const AnyView& b) {
  if (result == BinaryResult::Logical) return is_boolean(a) && is_boolean(b);
  return result == BinaryResult::Boolean;
}

}  // namespace

void binary(Machine&, const Op& op, AnyView* base) {
  const BinaryOperands& o = *op.binary;
  const AnyView &a = value_of(o.a, base), &b = value_of(o.b, base);
  if (!is_integer(a) || !is_integer(b)) {
    throw Error(ErrorKind::Runtime, cat(info_of(o.operation->opcode).mnemonic, " needs an integer"))
        .found(type_name((is_integer(a) ? b : a).type_index));
  }
  int64_t r = 0;
  if (!o.operation->compute(a.v.i, b.v.i, &r)) fail_size_overflow(a.v.i, b.v.i);
  put_result(base, op.a, scalar(r, has_boolean_result(o.operation->result, a, b)));
}

void op_not(Machine&, const Op& op, AnyView* base) {
  int64_t v = integer(op.operands->args[0], base, "not");
  bool is_bool = value_of(op.operands->args[0], base).type_index == TypeIndex::Bool;
  put_result(base, op.a, is_bool ? Any(v == 0) : Any(~v));
}

void op_narrow(Machine&, const Op& op, AnyView* base) {
  int64_t v = integer(op.operands->args[0], base, "narrow");
  DataType t = op.operands->dtype;
  if (!t.is_int() && !t.is_bool()) {
    throw Error(ErrorKind::Runtime, "narrow converts only to integers").found(to_text(t));
  }
  put_result(base, op.a, scalar(wrap_to(t, v), t.is_bool()));
}

void op_select(Machine&, const Op& op, AnyView* base) {
  const Operands& o = *op.operands;
  const ValueRef& chosen = o.args[integer(o.args[0], base, "select") ? 1 : 2];
  Any value(value_of(chosen, base));
  release_last_uses(*op.operands, base);
  put_result(base, op.a, std::move(value));
}

void op_check(Machine&, const Op& op, AnyView* base) {
  const Operands& o = *op.operands;
  if (integer(o.args[0], base, "check")) [[likely]]
    return;
  std::string_view form = o.args[1].constant->as<std::string_view>();
  std::string message;
  size_t next = 2;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form.substr(i, 2) == "{}" && next < o.args.size()) {
      message += cat(integer(o.args[next++], base, "a message"));
      ++i;
    } else {
      message += form[i];
    }
  }
  throw Error(ErrorKind::Runtime, printable(message, true));
}

void op_fatal(Machine&, const Op& op, AnyView*) {
  throw Error(ErrorKind::Runtime,
              printable(op.operands->args[0].constant->as<std::string_view>(), true));
}

void op_load_packed(Machine&, const Op& op, AnyView* base) {
  const PackedTarget* target =
      op.as<Opcode::LoadPacked>().slot->target.load(std::memory_order_acquire);
  if (!target) {
    throw Error(ErrorKind::Runtime,
                cat("no packed function '", printable(op.as<Opcode::LoadPacked>().slot->name),
                    "' is linked"));
  }
  // A kernel has no function object: it is wrapped together with the owner of its code. The target
  // itself belongs to the Program, which the value may outlive.
  bool is_object = target->owner && target->owner->type_index == TypeIndex::Function;
  Function f =
      is_object
          ? Function(target->owner)
          : Function::from_packed([call = target->call, self = target->self, keep = target->owner](
                                      const AnyView* args, int32_t n, Any* result) {
              if (call(self, args, n, result) != 0) throw take_error();
            });
  put_result(base, op.a, Any(f));
}

void op_is_none(Machine&, const Op& op, AnyView* base) {
  bool none = value_of(op.operands->args[0], base).is_none();
  release_last_uses(*op.operands, base);
  put_result(base, op.a, Any(none));
}

// ---- data types and closures ----

namespace {

Array<Any> gather(const Operands& o, size_t from, AnyView* base) {
  Array<Any> fields;
  fields.reserve(o.args.size() - from);
  for (size_t i = from; i < o.args.size(); ++i) {
    fields.push_back(Any(value_of(o.args[i], base)));
  }
  return fields;
}

}  // namespace

void op_alloc_adt(Machine&, const Op& op, AnyView* base) {
  auto cell = make<AdtObj>();
  cell->tag = op.operands->args[0].constant->v.i;
  cell->fields = gather(*op.operands, 1, base);
  release_last_uses(*op.operands, base);
  put_result(base, op.a, Any(std::move(cell)));
}

void op_alloc_tuple(Machine&, const Op& op, AnyView* base) {
  Array<Any> fields = gather(*op.operands, 0, base);
  release_last_uses(*op.operands, base);
  put_result(base, op.a, Any(fields));
}

void op_get_field(Machine& m, const Op& op, AnyView* base) {
  const AnyView& object = value_of(op.operands->args[0], base);
  int64_t index = integer(op.operands->args[1], base, "get_field");
  const Any* begin = nullptr;
  int64_t size = 0;
  if (const auto* cell = object.as_object<AdtObj>()) {
    begin = cell->fields.any_begin();
    size = static_cast<int64_t>(cell->fields.size());
  } else if (const auto* array = object.as_object<ArrayObj>()) {
    begin = array->begin();
    size = array->size;
  } else {
    throw Error(ErrorKind::Runtime, "get_field needs a cell or a tuple")
        .found(type_name(object.type_index));
  }
  if (index < 0 || index >= size) {
    throw Error(ErrorKind::Runtime, "a field's index is out of range")
        .found(cat(index))
        .expected(cat("0 to ", size - 1));
  }
  Any field = begin[index];
  m.protect(&field);  // it may come from the caller's container
  release_last_uses(*op.operands, base);
  put_result(base, op.a, std::move(field));
}

void op_get_tag(Machine&, const Op& op, AnyView* base) {
  const AnyView& object = value_of(op.operands->args[0], base);
  const auto* cell = object.as_object<AdtObj>();
  if (!cell) {
    throw Error(ErrorKind::Runtime, "get_tag needs a cell").found(type_name(object.type_index));
  }
  int64_t tag = cell->tag;
  release_last_uses(*op.operands, base);
  put_result(base, op.a, Any(tag));
}

void op_alloc_closure(Machine& m, const Op& op, AnyView* base) {
  const CallOperands& o = op.as<Opcode::AllocClosure>();
  Ref<ClosureObj> closure = m.new_closure(*o.callee, o.args.size());
  for (size_t i = 0; i < o.args.size(); ++i) {
    closure->captures[i] = Any(value_of(o.args[i], base));
  }
  release_last_uses(o, base);
  put_result(base, op.a, Any(Function::adopt(std::move(closure))));
}

}  // namespace tenon::vm::slow_path

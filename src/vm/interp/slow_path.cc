#include "vm/interp/slow_path.h"

#include "object/array.h"
#include "object/cell.h"
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
  if (o.operation->result == BinaryResult::OfFloats) {
    return put_result(base, op.a, float_result(o.operation->opcode, a, b));
  }
  if (!is_integer(a) || !is_integer(b)) {
    throw Error(ErrorKind::Runtime, cat(info_of(o.operation->opcode).mnemonic, " needs an integer"))
        .found(type_name((is_integer(a) ? b : a).type_index));
  }
  int64_t r = 0;
  if (!o.operation->compute(a.v.i, b.v.i, &r)) fail_size_overflow(a.v.i, b.v.i);
  put_result(base, op.a, scalar(r, has_boolean_result(o.operation->result, a, b)));
}

void op_not(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::Not> in(op);
  const int64_t v = integer(in["a"], base, in.mnemonic);
  const bool is_bool = value_of(in["a"], base).type_index == TypeIndex::Bool;
  finish(op, base, is_bool ? Any(v == 0) : Any(~v));
}

void op_narrow(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::Narrow> in(op);
  const int64_t v = integer(in["a"], base, in.mnemonic);
  const DataType t = op.operands->dtype;
  if (!t.is_int() && !t.is_bool()) {
    throw Error(ErrorKind::Runtime, "narrow converts only to integers").found(to_text(t));
  }
  finish(op, base, scalar(wrap_to(t, v), t.is_bool()));
}

void op_select(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::Select> in(op);
  const bool holds = integer(in["cond"], base, in.mnemonic) != 0;
  finish(op, base, Any(value_of(holds ? in["a"] : in["b"], base)));
}

void op_check(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::Check> in(op);
  if (integer(in["cond"], base, in.mnemonic)) [[likely]]
    return;
  const auto form = in["message"].constant->as<std::string_view>();
  const std::span<const ValueRef> values = in.list("values");
  std::string message;
  size_t next = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form.substr(i, 2) == "{}" && next < values.size()) {
      message += cat(integer(values[next++], base, "a message"));
      ++i;
    } else {
      message += form[i];
    }
  }
  throw Error(ErrorKind::Runtime, printable(message, true));
}

void op_fatal(Machine&, const Op& op, AnyView*) {
  const Values<Opcode::Fatal> in(op);
  const auto message = in["message"].constant->as<std::string_view>();
  throw Error(ErrorKind::Runtime, printable(message, true));
}

void op_load_packed(Machine&, const Op& op, AnyView* base) {
  finish(op, base, Any(function_of(*op.as<Opcode::LoadPacked>().slot)));
}

void op_is_none(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::IsNone> in(op);
  finish(op, base, Any(value_of(in["value"], base).is_none()));
}

// ---- data types and closures ----

namespace {

Array<Any> gather(std::span<const ValueRef> refs, const AnyView* base) {
  Array<Any> fields;
  fields.reserve(refs.size());
  for (const ValueRef& ref : refs) fields.push_back(Any(value_of(ref, base)));
  return fields;
}

}  // namespace

namespace {

[[noreturn]] void fail_no_cell(const char* message, const AnyView& found) {
  throw Error(ErrorKind::Runtime, message).found(type_name(found.type_index));
}

// A value that an instruction reads, moved at its last use.
Any taken(const ValueRef& ref, AnyView* base) {
  if (!ref.last) return Any(value_of(ref, base));
  return Any::adopt(std::exchange(base[ref.reg], AnyView()));
}

RegisterWords moved(AnyView& from) {
  const RegisterWords words = read_words(from);
  write_words(from, {0, 0});
  return words;
}

// The value as a cell that only this reference holds.
CellObj* sole(const AnyView& value) {
  auto* cell = value.as_object<CellObj>();
  return cell && cell->unique() ? cell : nullptr;
}

void make_cell(const Op& op, AnyView* base, Ref<CellObj> cell, int64_t tag,
               std::span<const ValueRef> fields) {
  if (!cell || static_cast<size_t>(cell->size) != fields.size()) {
    cell = CellObj::of(tag, fields.size());
  }
  cell->tag = tag;
  for (size_t i = 0; i < fields.size(); ++i) cell->begin()[i] = taken(fields[i], base);
  put_result(base, op.a, Any(std::move(cell)));
}

}  // namespace

void op_alloc_adt(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::AllocAdt> in(op);
  make_cell(op, base, {}, literal(in["tag"]), in.list("fields"));
}

void op_reuse_adt(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::ReuseAdt> in(op);
  const ValueRef& ref = in["object"];
  // The last use of a register that is several operands is the last of them, so that a cell which
  // is made here is no field of its own.
  const Any old = ref.last ? taken(ref, base) : Any();
  make_cell(op, base, Ref<CellObj>(sole(old)), literal(in["tag"]), in.list("fields"));
}

void op_take_fields(Machine& m, const Op& op, AnyView* base) {
  const Values<Opcode::TakeFields> in(op);
  const std::vector<int32_t>& to = op.as<Opcode::TakeFields>().registers;
  const ValueRef& ref = in["object"];
  const AnyView object = value_of(ref, base);
  if (object.type_index != TypeIndex::Cell ||
      static_cast<size_t>(static_cast<CellObj*>(object.v.object)->size) != to.size()) [[unlikely]] {
    fail_no_cell("take_fields needs a cell of as many fields", object);
  }
  auto* cell = static_cast<CellObj*>(object.v.object);
  const bool moves = cell->unique();
  // A field may be written to the cell's register.
  const Any held = ref.last ? taken(ref, base) : moves ? Any(object) : Any();
  AnyView* field = cell->begin();
  for (const int32_t reg : to) {
    if (reg >= 0) {
      const RegisterWords words = moves ? moved(*field) : shared(*field);
      if (static_cast<int32_t>(words.head) == TypeIndex::Tensor) [[unlikely]] {
        Any tensor = Any::adopt(AnyView::of_object(object_of(words)));
        m.protect(&tensor);
        put(base[reg], tensor.leak());
      } else {
        put_words(base[reg], words);
      }
    } else if (moves) {
      put_words(*field, {0, 0});
    }
    ++field;
  }
}

void op_alloc_tuple(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::AllocTuple> in(op);
  finish(op, base, Any(gather(in.list("fields"), base)));
}

void op_get_field(Machine& m, const Op& op, AnyView* base) {
  const Values<Opcode::GetField> in(op);
  const AnyView& object = value_of(in["object"], base);
  const int64_t index = integer(in["index"], base, in.mnemonic);
  const Any* begin = nullptr;
  int64_t size = 0;
  if (const auto* cell = object.as_object<CellObj>()) {
    begin = cell->begin();
    size = cell->size;
  } else if (const auto* array = object.as_object<ArrayObj>()) {
    begin = array->begin();
    size = array->size;
  } else {
    fail_no_cell("get_field needs a cell or a tuple", object);
  }
  if (index < 0 || index >= size) {
    throw Error(ErrorKind::Runtime, "a field's index is out of range")
        .found(cat(index))
        .expected(cat("0 to ", size - 1));
  }
  Any field = begin[index];
  m.protect(&field);  // it may come from the caller's container
  finish(op, base, std::move(field));
}

void op_get_tag(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::GetTag> in(op);
  const AnyView& object = value_of(in["object"], base);
  const auto* cell = object.as_object<CellObj>();
  if (!cell) {
    fail_no_cell("get_tag needs a cell", object);
  }
  finish(op, base, Any(cell->tag));
}

void op_alloc_closure(Machine& m, const Op& op, AnyView* base) {
  const std::span captures = Values<Opcode::AllocClosure>(op).list("captures");
  Ref<ClosureObj> closure = m.new_closure(*op.as<Opcode::AllocClosure>().callee, captures.size());
  for (size_t i = 0; i < captures.size(); ++i) {
    closure->captures()[i] = Any(value_of(captures[i], base));
  }
  finish(op, base, Any(Function::adopt(std::move(closure))));
}

}  // namespace tenon::vm::slow_path

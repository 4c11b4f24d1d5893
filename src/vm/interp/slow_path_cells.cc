// The slow path's instructions on cells, tuples and closures, and those that read an array's
// elements. Values are moved as words.
#include <cstdlib>

#include "object/array.h"
#include "object/cell.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/operand_values.h"
#include "vm/interp/slow_path.h"

namespace tenon::vm::slow_path {
namespace {

// A field for a register: a tensor may come from a container of the caller's.
RegisterWords admitted(Machine& m, RegisterWords field) {
  if (static_cast<int32_t>(field.head) != TypeIndex::Tensor) [[likely]]
    return field;
  Any tensor = Any::adopt(AnyView::of_object(object_of(field)));
  m.protect(&tensor);
  return words_of(tensor.leak());
}

void make_cell(const Op& op, AnyView* base, Ref<CellObj> cell, int64_t tag,
               std::span<const ValueRef> fields) {
  if (!cell || static_cast<size_t>(cell->size) != fields.size()) {
    cell = CellObj::of(tag, fields.size());
  }
  cell->tag = tag;
  for (size_t i = 0; i < fields.size(); ++i) put_words(cell->begin()[i], taken(fields[i], base));
  if (op.a >= 0) put_words(at(base, op.a), words_of(std::move(cell)));
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
  // is made here isn't a field of its own.
  const Any old = ref.last ? Any::adopt(std::exchange(base[ref.reg], AnyView())) : Any();
  auto* cell = old.as_object<CellObj>();
  make_cell(op, base, Ref<CellObj>(cell && cell->unique() ? cell : nullptr), literal(in["tag"]),
            in.list("fields"));
}

void op_take_fields(Machine& m, const Op& op, AnyView* base) {
  const Values<Opcode::TakeFields> in(op);
  const std::vector<int32_t>& to = op.as<Opcode::TakeFields>().registers;
  const ValueRef& ref = in["object"];
  const AnyView& object = value_of(ref, base);
  if (object.type_index != TypeIndex::Cell ||
      static_cast<size_t>(static_cast<CellObj*>(object.v.object)->size) != to.size()) [[unlikely]] {
    fail_no_cell("take_fields needs a cell with a field for each register", object);
  }
  auto* cell = static_cast<CellObj*>(object.v.object);
  const bool moves = cell->unique();
  // Fields may be written to registers that hold the cell, to all of them.
  if (ref.last) moved(base[ref.reg]);
  const Ref<CellObj> held = ref.last ? Ref<CellObj>::adopt(cell) : Ref<CellObj>(cell);
  AnyView* field = cell->begin();
  for (const int32_t reg : to) {
    if (reg >= 0) {
      put_words(base[reg], admitted(m, moves ? moved(*field) : shared(*field)));
    } else if (moves) {
      put_words(*field, {0, 0});
    }
    ++field;
  }
}

void op_alloc_tuple(Machine&, const Op& op, AnyView* base) {
  const std::span<const ValueRef> fields = Values<Opcode::AllocTuple>(op).list("fields");
  Ref<ArrayObj> tuple = ArrayObj::with_capacity(static_cast<int64_t>(fields.size()));
  for (const ValueRef& field : fields) {
    write_words(tuple->begin()[tuple->size++], taken(field, base));
  }
  finish(op, base, std::move(tuple));
}

// Also borrow_field, whose operands are the same.
void op_get_field(Machine& m, const Op& op, AnyView* base) {
  const Values<Opcode::GetField> in(op);
  const AnyView& object = value_of(in["object"], base);
  const int64_t index = integer(in["index"], base, in.mnemonic);
  const std::span<const Any> fields = fields_of(object);
  if (!fields.data()) fail_no_cell("get_field needs a cell or a tuple", object);
  const auto place = static_cast<size_t>(index);
  if (place >= fields.size()) [[unlikely]]
    fail_index(index, static_cast<int64_t>(fields.size()));
  finish(op, base, op.c < 0 ? borrowed(fields[place]) : admitted(m, shared(fields[place])));
}

void op_borrow_field(Machine& m, const Op& op, AnyView* base) {
  op_get_field(m, op, base);
}

void op_get_tag(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::GetTag> in(op);
  const AnyView& object = value_of(in["object"], base);
  if (std::abs(object.type_index) != TypeIndex::Cell) fail_no_cell("get_tag needs a cell", object);
  finish(op, base, Any(static_cast<const CellObj*>(object.v.object)->tag));
}

void op_alloc_closure(Machine& m, const Op& op, AnyView* base) {
  const std::span captures = Values<Opcode::AllocClosure>(op).list("captures");
  Ref<ClosureObj> closure = m.new_closure(*op.as<Opcode::AllocClosure>().callee, captures.size());
  for (size_t i = 0; i < captures.size(); ++i) {
    put_words(closure->captures()[i], shared(value_of(captures[i], base)));
  }
  finish(op, base, Any(Function::adopt(std::move(closure))));
}

}  // namespace tenon::vm::slow_path

// Cells and arrays as compiled code reads and changes them itself: their fields, tags and sizes,
// the reuse of a cell, and the change of an array that nothing else refers to.
#include <algorithm>

#include "codegen/llvm/bytecode_function.h"
#include "object/type_index.h"

namespace tenon::codegen {

using vm::Arg;
using vm::ArgKind;
using vm::CodeLayout;
using vm::Instruction;
using vm::Opcode;

namespace {

// Cells of more fields are left to the machine.
constexpr size_t kMostFields = 8;

}  // namespace

void FunctionTranslator::or_in_machine(const Instruction& in, const State& before,
                                       llvm::BasicBlock* other) {
  llvm::BasicBlock* const done = new_block("done");
  b_.CreateBr(done);
  now_ = before;
  b_.SetInsertPoint(other);
  run_in_machine(in);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// Of a cell or an array, whose register may borrow it.
llvm::ConstantInt* FunctionTranslator::type_in(Arg object, int32_t type) {
  return b_.getInt32(static_cast<uint32_t>(object.is(ArgKind::Borrowed) ? -type : type));
}

// Also borrow_field, whose operands are the same. The machine takes a field that is a tensor, which
// may have to be made read-only.
bool FunctionTranslator::get_field(const Instruction& in) {
  const Arg destination = in.arg(vm::operand(Opcode::GetField, "dst")),
            object = in.arg(vm::operand(Opcode::GetField, "object"));
  if (!object.is_register() || kind_of_operand(object) != Kind::Any || destination.is_none()) {
    return false;
  }
  llvm::Value* index = integer(in.arg(vm::operand(Opcode::GetField, "index")));
  if (ended_ || !writing()) return false;
  const Words words = w_.load_words(b_, home(object.index()));
  llvm::BasicBlock *const cell = new_block("cell"), *const array = new_block("array"),
                          *const inside = new_block("inside"), *const other = new_block("other");
  llvm::SwitchInst* types = b_.CreateSwitch(b_.CreateTrunc(words.head, m_.i32), other, 2);
  types->addCase(type_in(object, TypeIndex::Cell), cell);
  types->addCase(type_in(object, TypeIndex::Array), array);
  llvm::PHINode* size = llvm::PHINode::Create(m_.i64, 2, "", inside);
  const auto read_size = [&](llvm::BasicBlock* block, int64_t offset) {
    b_.SetInsertPoint(block);
    size->addIncoming(m_.field(b_, m_.i64, b_.CreateIntToPtr(words.payload, m_.pointer), offset),
                      block);
    b_.CreateBr(inside);
  };
  read_size(cell, CodeLayout::kCellSize);
  read_size(array, CodeLayout::kArraySize);
  b_.SetInsertPoint(inside);
  require(b_.CreateICmpULT(index, size), other);
  Words value =
      w_.load_words(b_, element_place(b_.CreateIntToPtr(words.payload, m_.pointer), index));
  if (in.opcode() == Opcode::BorrowField) {
    value.head = w_.borrowed(b_, value.head);
  } else {
    require(b_.CreateNot(is_tensor(value)), other);
    w_.retain(b_, value);
  }
  const State before = now_;
  drop_last(object);
  define(destination.index(), value);
  or_in_machine(in, before, other);
  return true;
}

bool FunctionTranslator::read_number(const Instruction& in, int32_t type, int64_t offset) {
  const Arg destination = in.arg(0), object = in.arg(1);
  if (!object.is_register() || kind_of_operand(object) != Kind::Any || destination.is_none()) {
    return false;
  }
  llvm::Value* number = nullptr;
  if (writing()) {
    const Words words = w_.load_words(b_, home(object.index()));
    leave_unless(b_.CreateICmpEQ(b_.CreateTrunc(words.head, m_.i32), type_in(object, type)));
    number = m_.field(b_, m_.i64, b_.CreateIntToPtr(words.payload, m_.pointer), offset);
  }
  drop_last(object);
  define(destination.index(), Kind::Int, number);
  return true;
}

bool FunctionTranslator::get_tag(const Instruction& in) {
  return read_number(in, TypeIndex::Cell, CodeLayout::kCellTag);
}

bool FunctionTranslator::array_size(const Instruction& in) {
  return read_number(in, TypeIndex::Array, CodeLayout::kArraySize);
}

void FunctionTranslator::drop_last(Arg object) {
  if (!object.is(ArgKind::LastUse)) return;
  drop_old(object.index());
  clear(object.index());
}

void FunctionTranslator::require(llvm::Value* condition, llvm::BasicBlock* otherwise) {
  llvm::BasicBlock* const next = new_block("next");
  b_.CreateCondBr(condition, next, otherwise);
  b_.SetInsertPoint(next);
}

llvm::Value* FunctionTranslator::is_tensor(Words words) {
  return w_.has_type(b_, words.head, TypeIndex::Tensor);
}

llvm::Value* FunctionTranslator::object_of(Words words, int32_t type, llvm::BasicBlock* otherwise) {
  require(w_.has_type(b_, words.head, type), otherwise);
  return b_.CreateIntToPtr(words.payload, m_.pointer);
}

llvm::Value* FunctionTranslator::cell_of(Words words, size_t size, llvm::BasicBlock* otherwise) {
  llvm::Value* cell = object_of(words, TypeIndex::Cell, otherwise);
  llvm::Value* found = m_.field(b_, m_.i64, cell, CodeLayout::kCellSize);
  require(b_.CreateICmpEQ(found, b_.getInt64(size)), otherwise);
  return cell;
}

llvm::Value* FunctionTranslator::element_place(llvm::Value* object, llvm::Value* index) {
  static_assert(CodeLayout::kArrayFields == CodeLayout::kCellFields);
  llvm::Value* distance = b_.CreateMul(index, b_.getInt64(CodeLayout::kRegisterBytes));
  return b_.CreateGEP(b_.getInt8Ty(), w_.address(b_, object, CodeLayout::kCellFields), distance);
}

llvm::Value* FunctionTranslator::is_sole(llvm::Value* object) {
  llvm::LoadInst* strong = b_.CreateLoad(m_.i32, object);
  strong->setAtomic(llvm::AtomicOrdering::Acquire);
  strong->setAlignment(llvm::Align(8));
  return b_.CreateICmpEQ(strong, b_.getInt32(1));
}

// The machine takes fields that are tensors, which may have to be made read-only.
bool FunctionTranslator::take_fields(const Instruction& in) {
  const Arg object = in.arg(0);
  const std::span<const vm::Word> list = in.list();
  if (!object.is_register() || kind_of_operand(object) != Kind::Any || list.size() > kMostFields) {
    return false;
  }
  if (!writing()) return false;
  llvm::BasicBlock *const other = new_block("other"), *const moved = new_block("moved"),
                          *const shared = new_block("shared"), *const taken = new_block("taken");
  llvm::Value* cell = cell_of(w_.load_words(b_, home(object.index())), list.size(), other);
  std::vector<Words> fields;
  std::vector<llvm::Value*> places;
  llvm::Value* has_tensor = b_.getFalse();
  for (size_t i = 0; i < list.size(); ++i) {
    places.push_back(element_place(cell, b_.getInt64(i)));
    fields.push_back(w_.load_words(b_, places[i]));
    has_tensor = b_.CreateOr(has_tensor, is_tensor(fields[i]));
  }
  require(b_.CreateNot(has_tensor), other);
  b_.CreateCondBr(is_sole(cell), moved, shared);
  b_.SetInsertPoint(moved);
  for (size_t i = 0; i < list.size(); ++i) w_.store_words(b_, places[i], w_.none());
  for (size_t i = 0; i < list.size(); ++i) {
    if (Arg(list[i]).is_none()) release(fields[i]);
  }
  b_.CreateBr(taken);
  b_.SetInsertPoint(shared);
  for (size_t i = 0; i < list.size(); ++i) {
    if (!Arg(list[i]).is_none()) w_.retain(b_, fields[i]);
  }
  b_.CreateBr(taken);
  b_.SetInsertPoint(taken);
  const State before = now_;
  if (object.is(ArgKind::LastUse)) drop_old(object.index());
  for (size_t i = 0; i < list.size(); ++i) {
    if (!Arg(list[i]).is_none()) define(Arg(list[i]).index(), fields[i]);
  }
  or_in_machine(in, before, other);
  return true;
}

bool FunctionTranslator::reuse_adt(const Instruction& in) {
  const Arg destination = in.arg(vm::operand(Opcode::ReuseAdt, "dst")),
            object = in.arg(vm::operand(Opcode::ReuseAdt, "object")),
            tag = in.arg(vm::operand(Opcode::ReuseAdt, "tag"));
  const std::span<const vm::Word> list = in.list();
  const auto is_object = [&](vm::Word word) {
    return Arg(word).is_register() && Arg(word).index() == object.index();
  };
  if (!object.is(ArgKind::LastUse) || kind_of_operand(object) != Kind::Any ||
      destination.is_none() || list.size() > kMostFields || std::ranges::any_of(list, is_object)) {
    return false;
  }
  if (!writing()) return false;
  llvm::BasicBlock* const other = new_block("other");
  const Words words = w_.load_words(b_, home(object.index()));
  llvm::Value* cell = cell_of(words, list.size(), other);
  std::vector<llvm::Value*> places;
  llvm::Value* heads = b_.getInt64(0);
  for (size_t i = 0; i < list.size(); ++i) {
    places.push_back(element_place(cell, b_.getInt64(i)));
    heads = b_.CreateOr(heads, b_.CreateLoad(m_.i64, places[i]));
  }
  require(b_.CreateAnd(is_sole(cell), b_.CreateICmpEQ(heads, b_.getInt64(0))), other);
  const State before = now_;
  clear(object.index());
  const std::vector<Words> values = take_arguments(in);
  b_.CreateStore(b_.getInt64(static_cast<uint64_t>(tag.value())),
                 w_.address(b_, cell, CodeLayout::kCellTag));
  for (size_t i = 0; i < list.size(); ++i) w_.store_words(b_, places[i], values[i]);
  define(destination.index(), words);
  or_in_machine(in, before, other);
  return true;
}

bool FunctionTranslator::may_change(const Instruction& in, Arg array, Arg value) const {
  return array.is(ArgKind::LastUse) && kind_of_operand(array) == Kind::Any &&
         !in.arg(0).is_none() && !(value.is_register() && value.index() == array.index());
}

bool FunctionTranslator::array_set(const Instruction& in) {
  const Arg destination = in.arg(vm::operand(Opcode::ArraySet, "dst")),
            array = in.arg(vm::operand(Opcode::ArraySet, "array")),
            value = in.arg(vm::operand(Opcode::ArraySet, "value"));
  if (!may_change(in, array, value)) return false;
  llvm::Value* index = integer(in.arg(vm::operand(Opcode::ArraySet, "index")));
  if (ended_ || !writing()) return false;
  llvm::BasicBlock* const other = new_block("other");
  const Words words = w_.load_words(b_, home(array.index()));
  llvm::Value* object = object_of(words, TypeIndex::Array, other);
  require(b_.CreateICmpULT(index, m_.field(b_, m_.i64, object, CodeLayout::kArraySize)), other);
  require(is_sole(object), other);
  const State before = now_;
  llvm::Value* place = element_place(object, index);
  const Words old = w_.load_words(b_, place);
  w_.store_words(b_, place, take(value, value.is(ArgKind::LastUse)));
  clear(array.index());
  define(destination.index(), words);
  release(old);
  or_in_machine(in, before, other);
  return true;
}

bool FunctionTranslator::array_push(const Instruction& in) {
  const Arg destination = in.arg(vm::operand(Opcode::ArrayPush, "dst")),
            array = in.arg(vm::operand(Opcode::ArrayPush, "array")),
            value = in.arg(vm::operand(Opcode::ArrayPush, "value"));
  if (!may_change(in, array, value) || !writing()) return false;
  llvm::BasicBlock* const other = new_block("other");
  const Words words = w_.load_words(b_, home(array.index()));
  llvm::Value* object = object_of(words, TypeIndex::Array, other);
  llvm::Value* size = m_.field(b_, m_.i64, object, CodeLayout::kArraySize);
  require(b_.CreateICmpSLT(size, m_.field(b_, m_.i64, object, CodeLayout::kArrayCapacity)), other);
  require(is_sole(object), other);
  const State before = now_;
  w_.store_words(b_, element_place(object, size), take(value, value.is(ArgKind::LastUse)));
  b_.CreateStore(b_.CreateAdd(size, b_.getInt64(1)),
                 w_.address(b_, object, CodeLayout::kArraySize));
  clear(array.index());
  define(destination.index(), words);
  or_in_machine(in, before, other);
  return true;
}

}  // namespace tenon::codegen

// Cells and arrays: their fields and tags, and the reuse of a cell, as compiled code runs them
// itself.
#include <algorithm>

#include "codegen/llvm/bytecode_function.h"
#include "object/type_index.h"

// GCC mistakes LLVM's `new` with room for operands for an ordinary one.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

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
  const Arg destination = in.arg(0), object = in.arg(1), index = in.arg(2);
  if (index.is_register()) return get_element(in);
  if (!object.is_register() || kind_of_operand(object) != Kind::Any ||
      !index.is(ArgKind::Immediate) || index.value() < 0 || index.value() > 1 << 16 ||
      destination.is_none()) {
    return false;
  }
  const bool is_last = object.is(ArgKind::LastUse);
  const bool borrows = in.opcode() == Opcode::BorrowField;
  if (writing()) {
    const Words words = w_.load_words(b_, home(object.index()));
    llvm::BasicBlock *cell = new_block("cell"), *inside = new_block("inside"),
                     *field = new_block("field"), *other = new_block("other");
    llvm::Value* type = b_.CreateTrunc(words.head, m_.i32);
    static_assert(CodeLayout::kArrayFields == CodeLayout::kCellFields);
    llvm::SwitchInst* kinds = b_.CreateSwitch(type, other, 2);
    kinds->addCase(type_in(object, TypeIndex::Cell), cell);
    llvm::BasicBlock* const array = new_block("array");
    kinds->addCase(type_in(object, TypeIndex::Array), array);
    llvm::Value* pointer = nullptr;
    b_.SetInsertPoint(array);
    llvm::Value* of_array = b_.CreateIntToPtr(words.payload, m_.pointer);
    llvm::Value* array_size = m_.field(b_, m_.i64, of_array, CodeLayout::kArraySize);
    b_.CreateBr(inside);
    b_.SetInsertPoint(cell);
    llvm::Value* of_cell = b_.CreateIntToPtr(words.payload, m_.pointer);
    llvm::Value* cell_size = m_.field(b_, m_.i64, of_cell, CodeLayout::kCellSize);
    b_.CreateBr(inside);
    b_.SetInsertPoint(inside);
    llvm::PHINode* size = b_.CreatePHI(m_.i64, 2);
    size->addIncoming(array_size, array);
    size->addIncoming(cell_size, cell);
    pointer = b_.CreateIntToPtr(words.payload, m_.pointer);
    llvm::Value* number = b_.getInt64(static_cast<uint64_t>(index.value()));
    b_.CreateCondBr(b_.CreateICmpULT(number, size), field, other);
    b_.SetInsertPoint(field);
    Words value = w_.load_words(
        b_, w_.address(b_, pointer,
                       CodeLayout::kCellFields + index.value() * CodeLayout::kRegisterBytes));
    if (borrows) {
      value.head = w_.borrowed(b_, value.head);
    } else {
      llvm::BasicBlock* const plain = new_block("plain");
      b_.CreateCondBr(
          b_.CreateICmpEQ(b_.CreateTrunc(value.head, m_.i32), b_.getInt32(TypeIndex::Tensor)),
          other, plain);
      b_.SetInsertPoint(plain);
      w_.retain(b_, value);
    }
    const State before = now_;
    if (is_last) {
      drop_old(object.index());
      clear(object.index());
    }
    define(destination.index(), value);
    or_in_machine(in, before, other);  // a tensor, or an error
  } else {
    run_in_machine(in);
  }
  return true;
}

bool FunctionTranslator::get_tag(const Instruction& in) {
  const Arg destination = in.arg(0), object = in.arg(1);
  if (!object.is_register() || kind_of_operand(object) != Kind::Any || destination.is_none()) {
    return false;
  }
  llvm::Value* tag = nullptr;
  if (writing()) {
    const Words words = w_.load_words(b_, home(object.index()));
    llvm::Value* type = b_.CreateTrunc(words.head, m_.i32);
    leave_unless(b_.CreateICmpEQ(type, type_in(object, TypeIndex::Cell)));
    llvm::Value* pointer = b_.CreateIntToPtr(words.payload, m_.pointer);
    tag = m_.field(b_, m_.i64, pointer, CodeLayout::kCellTag);
  }
  if (object.is(ArgKind::LastUse)) {
    drop_old(object.index());
    clear(object.index());
  }
  define(destination.index(), Kind::Int, tag);
  return true;
}

llvm::Value* FunctionTranslator::object_of(Words words, llvm::ConstantInt* type,
                                           llvm::BasicBlock* otherwise) {
  llvm::BasicBlock* const typed = new_block("typed");
  b_.CreateCondBr(b_.CreateICmpEQ(b_.CreateTrunc(words.head, m_.i32), type), typed, otherwise);
  b_.SetInsertPoint(typed);
  return b_.CreateIntToPtr(words.payload, m_.pointer);
}

llvm::Value* FunctionTranslator::cell_of(Words words, size_t size, llvm::BasicBlock* otherwise) {
  llvm::BasicBlock* const sized = new_block("sized");
  llvm::Value* pointer = object_of(words, b_.getInt32(TypeIndex::Cell), otherwise);
  llvm::Value* found = m_.field(b_, m_.i64, pointer, CodeLayout::kCellSize);
  b_.CreateCondBr(b_.CreateICmpEQ(found, b_.getInt64(size)), sized, otherwise);
  b_.SetInsertPoint(sized);
  return pointer;
}

llvm::Value* FunctionTranslator::field_place(llvm::Value* cell, size_t index) {
  return w_.address(
      b_, cell, CodeLayout::kCellFields + static_cast<int64_t>(index) * CodeLayout::kRegisterBytes);
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
  if (!writing()) {
    run_in_machine(in);
    return true;
  }
  llvm::BasicBlock *const other = new_block("other"), *const plain = new_block("plain"),
                          *const moved = new_block("moved"), *const shared = new_block("shared"),
                          *const taken = new_block("taken");
  llvm::Value* cell = cell_of(w_.load_words(b_, home(object.index())), list.size(), other);
  std::vector<Words> fields;
  std::vector<llvm::Value*> places;
  llvm::Value* has_tensor = b_.getFalse();
  for (size_t i = 0; i < list.size(); ++i) {
    places.push_back(field_place(cell, i));
    fields.push_back(w_.load_words(b_, places[i]));
    llvm::Value* is_tensor =
        b_.CreateICmpEQ(b_.CreateTrunc(fields[i].head, m_.i32), b_.getInt32(TypeIndex::Tensor));
    has_tensor = b_.CreateOr(has_tensor, is_tensor);
  }
  b_.CreateCondBr(has_tensor, other, plain);
  b_.SetInsertPoint(plain);
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
  if (!writing()) {
    run_in_machine(in);
    return true;
  }
  llvm::BasicBlock *const other = new_block("other"), *const empty = new_block("empty");
  const Words words = w_.load_words(b_, home(object.index()));
  llvm::Value* cell = cell_of(words, list.size(), other);
  std::vector<llvm::Value*> places;
  llvm::Value* heads = b_.getInt64(0);
  for (size_t i = 0; i < list.size(); ++i) {
    places.push_back(field_place(cell, i));
    heads = b_.CreateOr(heads, b_.CreateLoad(m_.i64, places[i]));
  }
  b_.CreateCondBr(b_.CreateAnd(is_sole(cell), b_.CreateICmpEQ(heads, b_.getInt64(0))), empty,
                  other);
  b_.SetInsertPoint(empty);
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

}  // namespace tenon::codegen

// Arrays: their size and elements, and the change of an array that nothing else refers to, as
// compiled code runs them itself.
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

void FunctionTranslator::require(llvm::Value* condition, llvm::BasicBlock* otherwise) {
  llvm::BasicBlock* const next = new_block("next");
  b_.CreateCondBr(condition, next, otherwise);
  b_.SetInsertPoint(next);
}

llvm::Value* FunctionTranslator::element_place(llvm::Value* array, llvm::Value* index) {
  llvm::Value* distance = b_.CreateMul(index, b_.getInt64(CodeLayout::kRegisterBytes));
  return b_.CreateGEP(b_.getInt8Ty(), w_.address(b_, array, CodeLayout::kArrayFields), distance);
}

// The machine takes an element that is a tensor, which may have to be made read-only, and the
// fields of cells.
bool FunctionTranslator::get_element(const Instruction& in) {
  const Arg destination = in.arg(vm::operand(Opcode::GetField, "dst")),
            object = in.arg(vm::operand(Opcode::GetField, "object"));
  if (!object.is_register() || kind_of_operand(object) != Kind::Any || destination.is_none()) {
    return false;
  }
  llvm::Value* index = integer(in.arg(vm::operand(Opcode::GetField, "index")), true);
  if (ended_) return true;
  if (!writing()) {
    run_in_machine(in);
    return true;
  }
  llvm::BasicBlock* const other = new_block("other");
  llvm::Value* array =
      object_of(w_.load_words(b_, home(object.index())), type_in(object, TypeIndex::Array), other);
  require(b_.CreateICmpULT(index, m_.field(b_, m_.i64, array, CodeLayout::kArraySize)), other);
  const Words element = w_.load_words(b_, element_place(array, index));
  require(b_.CreateICmpNE(b_.CreateTrunc(element.head, m_.i32), b_.getInt32(TypeIndex::Tensor)),
          other);
  w_.retain(b_, element);
  const State before = now_;
  if (object.is(ArgKind::LastUse)) {
    drop_old(object.index());
    clear(object.index());
  }
  define(destination.index(), element);
  or_in_machine(in, before, other);
  return true;
}

bool FunctionTranslator::array_size(const Instruction& in) {
  const Arg destination = in.arg(vm::operand(Opcode::ArraySize, "dst")),
            array = in.arg(vm::operand(Opcode::ArraySize, "array"));
  if (!array.is_register() || kind_of_operand(array) != Kind::Any || destination.is_none()) {
    return false;
  }
  llvm::Value* size = nullptr;
  if (writing()) {
    const Words words = w_.load_words(b_, home(array.index()));
    leave_unless(
        b_.CreateICmpEQ(b_.CreateTrunc(words.head, m_.i32), type_in(array, TypeIndex::Array)));
    size =
        m_.field(b_, m_.i64, b_.CreateIntToPtr(words.payload, m_.pointer), CodeLayout::kArraySize);
  }
  if (array.is(ArgKind::LastUse)) {
    drop_old(array.index());
    clear(array.index());
  }
  define(destination.index(), Kind::Int, size);
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
  llvm::Value* index = integer(in.arg(vm::operand(Opcode::ArraySet, "index")), true);
  if (ended_) return true;
  if (!writing()) {
    run_in_machine(in);
    return true;
  }
  llvm::BasicBlock* const other = new_block("other");
  const Words words = w_.load_words(b_, home(array.index()));
  llvm::Value* object = object_of(words, b_.getInt32(TypeIndex::Array), other);
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
  if (!may_change(in, array, value)) return false;
  if (!writing()) {
    run_in_machine(in);
    return true;
  }
  llvm::BasicBlock* const other = new_block("other");
  const Words words = w_.load_words(b_, home(array.index()));
  llvm::Value* object = object_of(words, b_.getInt32(TypeIndex::Array), other);
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

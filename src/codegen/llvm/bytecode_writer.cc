#include "codegen/llvm/bytecode_writer.h"

#include <algorithm>

#include "codegen/llvm/abi.h"
#include "codegen/llvm/bytecode_flow.h"
#include "codegen/llvm/register_kind.h"
#include "object/type_index.h"
#include "support/poll.h"
#include "vm/executable/code_hash.h"

namespace tenon::codegen {
namespace {

using vm::CodeLayout;

constexpr llvm::CallingConv::ID kConvention = llvm::CallingConv::PreserveNone;

}  // namespace

BytecodeWriter::BytecodeWriter(ModuleWriter& writer, const vm::Unit& u) : m(writer), unit(u) {
  std::vector<llvm::Type*> types = {m.pointer, m.pointer, m.pointer};
  types.resize(4 + 2 * vm::kCodeArguments, m.i64);
  piece_type_ = llvm::FunctionType::get(m.i32, types, false);
}

llvm::Function* BytecodeWriter::piece(const std::string& name) {
  llvm::Function* f = m.function(piece_type_, name);
  f->setCallingConv(kConvention);
  // At one place in a cache line, so that its speed doesn't depend on what stands before it.
  f->setAlignment(llvm::Align(64));
  f->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::None);
  // Values are copied word by word: a vector's load would stall on the stores of its halves.
  f->addFnAttr(llvm::Attribute::NoImplicitFloat);
  return f;
}

llvm::Function* BytecodeWriter::resuming_piece(const std::string& name, uint32_t op) {
  llvm::Function* f = piece(name);
  static_assert(vm::kCodePrefixBytes == 16);
  f->setPrefixData(llvm::ConstantDataArray::get(m.context, llvm::ArrayRef<uint64_t>({op, 0})));
  return f;
}

PieceArguments BytecodeWriter::arguments_of(llvm::Function* piece) {
  PieceArguments a{piece->getArg(0), piece->getArg(1), piece->getArg(2), piece->getArg(3), {}};
  for (unsigned i = 0; i < vm::kCodeArguments; ++i) {
    a.words[i] = {piece->getArg(4 + 2 * i), piece->getArg(5 + 2 * i)};
  }
  return a;
}

void BytecodeWriter::jump(Builder& b, llvm::Value* piece, const PieceArguments& arguments) {
  std::vector<llvm::Value*> values = {arguments.state, arguments.base, arguments.frame,
                                      arguments.fuel};
  for (const Words& words : arguments.words) {
    for (llvm::Value* word : {words.head, words.payload}) {
      values.push_back(word ? word : llvm::PoisonValue::get(m.i64));
    }
  }
  llvm::CallInst* call = b.CreateCall(piece_type_, piece, values);
  call->setCallingConv(kConvention);
  call->setTailCallKind(llvm::CallInst::TCK_MustTail);
  b.CreateRet(call);
}

llvm::CallInst* BytecodeWriter::call_runtime(Builder& b, const PieceArguments& arguments,
                                             vm::CodeFunction vm::CodeRuntime::*function,
                                             uint32_t op, llvm::Value* extra) {
  llvm::Value* runtime = load_state(b, m.pointer, arguments, CodeLayout::kRuntime);
  llvm::Value* address = m.field(b, m.pointer, runtime, offset_in_table(function));
  return b.CreateCall(
      abi_function<vm::CodeFunction>(m.context), address,
      {arguments.state, arguments.base, arguments.frame, arguments.fuel, b.getInt64(op), extra});
}

void BytecodeWriter::leave(Builder& b, const PieceArguments& arguments, uint32_t op) {
  llvm::CallInst* exit = call_runtime(b, arguments, &vm::CodeRuntime::leave, op, b.getInt64(0));
  exit->setTailCall();
  b.CreateRet(exit);
}

llvm::Value* BytecodeWriter::closure_call(Builder& b, const PieceArguments& arguments) const {
  llvm::Value* runtime = load_state(b, m.pointer, arguments, CodeLayout::kRuntime);
  return m.field(b, m.pointer, runtime, offset_in_table(&vm::CodeRuntime::closure_call));
}

llvm::Value* BytecodeWriter::function(Builder& b, llvm::Value* index) const {
  llvm::Value* place =
      b.CreateInBoundsGEP(pieces_type_, pieces_, {b.getInt32(0), b.CreateZExt(index, m.i64)});
  return b.CreateLoad(m.pointer, place);
}

llvm::Value* BytecodeWriter::address(Builder& b, llvm::Value* base, int64_t offset) const {
  return b.CreateConstInBoundsGEP1_64(m.i8, base, static_cast<uint64_t>(offset));
}

Words BytecodeWriter::load_words(Builder& b, llvm::Value* from) const {
  Words words;
  words.head = b.CreateLoad(m.i64, from);
  words.payload = b.CreateLoad(m.i64, address(b, from, 8));
  return words;
}

void BytecodeWriter::store_words(Builder& b, llvm::Value* to, Words words) const {
  b.CreateStore(words.head, to);
  b.CreateStore(words.payload, address(b, to, 8));
}

Words BytecodeWriter::number(int32_t type, llvm::Value* payload) const {
  return {llvm::ConstantInt::get(m.i64, static_cast<uint64_t>(type)), payload};
}

llvm::Value* BytecodeWriter::has_type(Builder& b, llvm::Value* head, int32_t type) const {
  return b.CreateICmpEQ(b.CreateTrunc(head, m.i32), b.getInt32(static_cast<uint32_t>(type)));
}

llvm::Value* BytecodeWriter::is_object(Builder& b, llvm::Value* head) const {
  return b.CreateICmpSGE(b.CreateTrunc(head, m.i32),
                         b.getInt32(static_cast<uint32_t>(TypeIndex::ObjectBegin)));
}

void BytecodeWriter::retain(Builder& b, Words words) const {
  llvm::Function* f = b.GetInsertBlock()->getParent();
  auto* count = llvm::BasicBlock::Create(m.context, "count", f);
  auto* add = llvm::BasicBlock::Create(m.context, "retain", f);
  auto* done = llvm::BasicBlock::Create(m.context, "retained", f);
  b.CreateCondBr(is_object(b, words.head), count, done);
  b.SetInsertPoint(count);
  llvm::Value* object = b.CreateIntToPtr(words.payload, m.pointer);
  llvm::LoadInst* strong = b.CreateLoad(m.i32, object);
  strong->setAtomic(llvm::AtomicOrdering::Monotonic);
  strong->setAlignment(llvm::Align(8));
  b.CreateCondBr(b.CreateICmpULT(strong, b.getInt32(CodeLayout::kSaturated)), add, done);
  b.SetInsertPoint(add);
  b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, object, b.getInt64(1), llvm::Align(8),
                    llvm::AtomicOrdering::Monotonic);
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

llvm::Value* BytecodeWriter::borrowed(Builder& b, llvm::Value* head) const {
  llvm::Value* negated = b.CreateZExt(b.CreateNeg(b.CreateTrunc(head, m.i32)), m.i64);
  return b.CreateSelect(is_object(b, head), negated, head);
}

void BytecodeWriter::write() {
  uint32_t op = vm::kEntryOps;
  for (size_t i = 0; i < unit.functions.size(); ++i) {
    functions_.push_back(piece(cat("f", i)));
    const bool has_numbers = std::ranges::any_of(
        unit.functions[i].params, [](const auto& p) { return is_number(kind_of(p.type)); });
    expected_.push_back(has_numbers ? piece(cat("f", i, ".expected")) : functions_.back());
    first_ops_.push_back(op);
    const std::vector<vm::Word>& code = unit.functions[i].code;
    for (uint32_t at = 0; at < code.size(); ++op) {
      vm::Instruction in;
      TENON_ASSERT(decode(code, at, &in), "code that doesn't decode");
      at += in.words();
    }
  }
  pieces_type_ = llvm::ArrayType::get(m.pointer, functions_.size());
  const std::vector<llvm::Constant*> pieces(functions_.begin(), functions_.end());
  pieces_ = m.constant(llvm::ConstantArray::get(pieces_type_, pieces), "pieces");
  find_returns();
  write_exit();
  write_trampoline();
  std::vector<llvm::Function*> entries;
  for (uint32_t i = 0; i < unit.functions.size(); ++i) {
    poll();
    write_bytecode_function(*this, i);
    entries.push_back(write_stack_entry(i));
  }
  write_table(entries);
}

// Starts from yes for every function, and passes each no on to those that end with a call of it.
void BytecodeWriter::find_returns() {
  std::vector<std::vector<uint32_t>> ended_by(unit.functions.size());
  std::vector<uint32_t> open;
  returns_expected_.assign(unit.functions.size(), true);
  for (uint32_t i = 0; i < unit.functions.size(); ++i) {
    poll();
    std::vector<uint32_t> callees;
    if (!codegen::returns_expected(*this, i, &callees)) {
      returns_expected_[i] = false;
      open.push_back(i);
    }
    for (uint32_t callee : callees) ended_by[callee].push_back(i);
  }
  while (!open.empty()) {
    const uint32_t i = open.back();
    open.pop_back();
    for (uint32_t caller : ended_by[i]) {
      if (!returns_expected_[caller]) continue;
      returns_expected_[caller] = false;
      open.push_back(caller);
    }
  }
}

void BytecodeWriter::write_exit() {
  exit_ = resuming_piece("exit", 0);
  Builder b(llvm::BasicBlock::Create(m.context, "", exit_));
  const PieceArguments arguments = arguments_of(exit_);
  store_words(b, address(b, arguments.state, CodeLayout::kValue), arguments.words[0]);
  b.CreateStore(arguments.fuel, address(b, arguments.state, CodeLayout::kFuel));
  b.CreateRet(b.getInt32(static_cast<uint32_t>(vm::CodeExit::Returned)));
}

void BytecodeWriter::write_trampoline() {
  trampoline_ = m.function(abi_function<decltype(vm::CodeTable::enter)>(m.context), "enter");
  Builder b(llvm::BasicBlock::Create(m.context, "", trampoline_));
  std::vector<llvm::Value*> values;
  for (unsigned i = 0; i < 4; ++i) values.push_back(trampoline_->getArg(i));
  values.resize(piece_type_->getNumParams(), llvm::PoisonValue::get(m.i64));
  llvm::CallInst* call = b.CreateCall(piece_type_, trampoline_->getArg(4), values);
  call->setCallingConv(kConvention);
  call->setTailCallKind(llvm::CallInst::TCK_NoTail);
  b.CreateRet(call);
}

llvm::Function* BytecodeWriter::write_stack_entry(uint32_t index) {
  llvm::Function* f = piece(cat("f", index, ".stack"));
  Builder b(llvm::BasicBlock::Create(m.context, "", f));
  PieceArguments arguments = arguments_of(f);
  const size_t in_words = std::min<size_t>(unit.functions[index].params.size(), vm::kCodeArguments);
  for (size_t i = 0; i < vm::kCodeArguments; ++i) {
    arguments.words[i] = {};
    if (i >= in_words) continue;
    llvm::Value* reg =
        address(b, arguments.base, static_cast<int64_t>(i) * CodeLayout::kRegisterBytes);
    arguments.words[i] = load_words(b, reg);
    store_words(b, reg, none());
  }
  jump(b, functions_[index], arguments);
  return f;
}

void BytecodeWriter::write_table(const std::vector<llvm::Function*>& entries) {
  auto* list_type = llvm::ArrayType::get(m.pointer, entries.size());
  std::vector<llvm::Constant*> addresses(entries.begin(), entries.end());
  auto* list = m.constant(llvm::ConstantArray::get(list_type, addresses), "functions");
  llvm::Constant* table = llvm::ConstantStruct::getAnon(
      {llvm::ConstantInt::get(m.i32, vm::kCodeAbiVersion),
       llvm::ConstantInt::get(m.i32, entries.size()),
       llvm::ConstantInt::get(m.i64, vm::code_hash(unit.functions)), trampoline_, exit_, list});
  new llvm::GlobalVariable(m.module, table->getType(), true, llvm::GlobalValue::ExternalLinkage,
                           table, vm::kCodeTableSymbol);
}

}  // namespace tenon::codegen

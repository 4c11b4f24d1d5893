// A program's bytecode as machine code (vm/executable/code_abi.h): what its functions share.
// Private to this folder: it exposes LLVM types.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/llvm/module_writer.h"
#include "codegen/llvm/numeric.h"
#include "vm/executable/code_abi.h"
#include "vm/isa/unit.h"

namespace tenon::codegen {

// The two words of a register: its type index, and its payload.
struct Words {
  llvm::Value *head = nullptr, *payload = nullptr;
};

// The arguments of a piece.
struct PieceArguments {
  llvm::Value *state, *base, *frame, *fuel;
  Words words[vm::kCodeArguments];
};

class BytecodeWriter {
 public:
  BytecodeWriter(ModuleWriter& m, const vm::Unit& unit);

  // Writes all functions, and the table that exports them.
  void write();

  ModuleWriter& m;
  const vm::Unit& unit;

  // A piece without a body. Its address may only be called with the pieces' convention.
  llvm::Function* piece(const std::string& name);
  // The same for one that a frame record may hold, for the call at that Op.
  llvm::Function* resuming_piece(const std::string& name, uint32_t op);
  static PieceArguments arguments_of(llvm::Function* piece);
  // Ends the block with a tail call. Arguments without a value are left undefined.
  void jump(Builder& b, llvm::Value* piece, const PieceArguments& arguments);
  // Calls a function of vm::CodeRuntime; the result is its CodeExit.
  llvm::CallInst* call_runtime(Builder& b, const PieceArguments& arguments,
                               vm::CodeFunction vm::CodeRuntime::*function, uint32_t op,
                               llvm::Value* extra);
  // Ends the block: bytecode goes on at that Op.
  void leave(Builder& b, const PieceArguments& arguments, uint32_t op);
  llvm::Value* load_state(Builder& b, llvm::Type* type, const PieceArguments& arguments,
                          int64_t offset) const {
    return m.field(b, type, arguments.state, offset);
  }
  llvm::Value* address(Builder& b, llvm::Value* base, int64_t offset) const;
  Words load_words(Builder& b, llvm::Value* from) const;
  void store_words(Builder& b, llvm::Value* to, Words words) const;
  // Counts another reference if the words are an object's.
  void retain(Builder& b, Words words) const;
  // Whether the head is that of a value of the type.
  llvm::Value* has_type(Builder& b, llvm::Value* head, int32_t type) const;
  // Whether the head is that of an object that the register owns.
  llvm::Value* is_object(Builder& b, llvm::Value* head) const;
  // The head of a value for a register that borrows.
  llvm::Value* borrowed(Builder& b, llvm::Value* head) const;
  Words number(int32_t type, llvm::Value* payload) const;
  Words none() const { return number(0, llvm::ConstantInt::get(m.i64, 0)); }

  // The piece of a function that takes its first arguments as words, the others in registers, and
  // checks that they are the numbers that its signature expects.
  llvm::Function* function(uint32_t index) const { return functions_[index]; }
  // The one that doesn't check, and ignores the heads of these numbers.
  llvm::Function* expected(uint32_t index) const { return expected_[index]; }
  // Whether a function returns nothing but numbers of the kind that its signature says.
  bool returns_expected(uint32_t index) const { return returns_expected_[index]; }
  // The address of that piece of the function with the index `index`, an i32.
  llvm::Value* function(Builder& b, llvm::Value* index) const;
  // The address in CodeRuntime that tells closures of programs from other functions.
  llvm::Value* closure_call(Builder& b, const PieceArguments& arguments) const;
  // The index of a function's first Op.
  uint32_t first_op(uint32_t index) const { return first_ops_[index]; }

 private:
  void find_returns();
  void write_trampoline();
  void write_exit();
  // The piece that takes all arguments in registers of the stack.
  llvm::Function* write_stack_entry(uint32_t index);
  void write_table(const std::vector<llvm::Function*>& entries);

  llvm::FunctionType* piece_type_;
  std::vector<llvm::Function*> functions_, expected_;
  std::vector<bool> returns_expected_;
  llvm::ArrayType* pieces_type_ = nullptr;
  llvm::GlobalVariable* pieces_ = nullptr;  // the addresses of functions_
  std::vector<uint32_t> first_ops_;
  llvm::Function *trampoline_ = nullptr, *exit_ = nullptr;
};

// Writes the body of a function's piece, and the pieces that it goes on with.
void write_bytecode_function(BytecodeWriter& w, uint32_t index);
// Whether every value that the function returns is a number of its signature's kind, provided that
// those it tail-calls return such numbers too; adds these to `tail_callees`.
bool returns_expected(BytecodeWriter& w, uint32_t index, std::vector<uint32_t>* tail_callees);

}  // namespace tenon::codegen

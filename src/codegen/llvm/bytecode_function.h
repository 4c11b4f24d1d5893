// Translates one function of bytecode to its pieces. Private to this folder: it exposes LLVM types.
//
// Each register has a kind at each place of the code: a number that is in a processor register, or
// a value in the stack. The kinds are found first, by walking the blocks until nothing changes;
// then the blocks are walked once more, and written. Both walks run the same code, so that they
// agree.
//
// The translation expects what signatures say of numbers, and of what closures return what its uses
// say (closure_results.h). Where another type comes, or an operation fails, the piece leaves
// (vm/executable/code_abi.h), and bytecode reports the error.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "codegen/llvm/bytecode_flow.h"
#include "codegen/llvm/bytecode_writer.h"
#include "codegen/llvm/register_kind.h"

namespace tenon::vm {
struct DimPattern;  // vm/isa/code_builder.h
}  // namespace tenon::vm

namespace tenon::codegen {

// The type index in a number's head.
int32_t type_index_of(RegisterKind kind);

class FunctionTranslator {
 public:
  FunctionTranslator(BytecodeWriter& writer, uint32_t index);
  void translate();
  // See bytecode_writer.h.
  bool returns_expected(std::vector<uint32_t>* tail_callees);

 private:
  using Kind = RegisterKind;

  struct State {
    std::vector<Kind> kinds;
    RegisterSet stale;  // registers that aren't Any and whose place in the stack isn't None
  };
  // Writes what is left of an instruction.
  using Body = void (FunctionTranslator::*)(const vm::Instruction&);
  // A piece that is still to be written: the code that it begins with, and the walk's place there.
  struct Pending {
    llvm::Function* function;
    std::function<void()> begin;
    State state;
    uint32_t at = 0;
    RegisterSet live = RegisterSet(0);  // the registers that have values
    bool is_apart = false;
  };
  struct Piece {
    llvm::Function* function;
    bool is_apart;
    PieceArguments arguments;               // with the fuel at the beginning
    std::vector<llvm::AllocaInst*> locals;  // of registers that are numbers; made when needed
    llvm::AllocaInst* fuel = nullptr;
    std::map<uint32_t, llvm::BasicBlock*> blocks = {};
    std::vector<uint32_t> open = {};  // blocks that are still to be written
  };

  // ---- bytecode_function.cc: the walk, pieces and jumps ----
  void find_kinds();
  void arrive(uint32_t block, const State& state);
  void walk(uint32_t block);
  void walk_until(uint32_t block, uint32_t end);  // up to, without, the instruction `end`
  bool writing() const { return piece_ != nullptr; }
  void write_piece(const Pending& pending);
  Words parameter(uint32_t i);
  void check_parameters();
  void take_parameters();
  State at_entry() const;
  void reload_live();
  llvm::Function* piece_of(uint32_t block);
  llvm::BasicBlock* block_of(uint32_t block);
  // Ends the present block of LLVM. A jump backwards that is `taken` costs fuel.
  void go(uint32_t block, bool taken);
  // Ends the present block of LLVM: the instruction goes on in a piece of its own. That is for code
  // that rarely runs and calls the machine: a function of machine code without such calls needs no
  // native frame.
  void go_apart(Body body);
  llvm::Value* is_asked();
  void charge_jump();
  // Makes a block of LLVM from which the code goes to that block.
  llvm::BasicBlock* edge(uint32_t block, bool taken);
  void branch(llvm::Value* condition, uint32_t otherwise);
  void return_from(const vm::Instruction& in);
  void return_words(Words words);

  // ---- bytecode_values.cc: registers and places to leave at ----
  uint32_t op() const { return first_op_ + at_; }
  PieceArguments arguments() const;  // with the present fuel
  llvm::Value* home(uint32_t r);
  llvm::AllocaInst* local(uint32_t r);
  // A NaN that an operation made, as the function of this name in vm/interp/arithmetic.h.
  llvm::Value* one_nan(llvm::Value* bits);
  llvm::Value* payload(uint32_t r);  // of a number, as it is stored in the stack
  // Of a number, in a register of this kind. Only where RawFloat is asked for it may be raw.
  llvm::Value* payload(vm::Arg number, Kind as);
  void set_fuel(llvm::Value* fuel);
  void reload_fuel();
  llvm::BasicBlock* new_block(const char* name) const;
  // Writes code that rarely runs if the condition holds; the code ends its block, or goes on.
  template <class Write>
  void rarely(llvm::Value* condition, const Write& write);
  void fail();   // ends the block: an error waits
  void leave();  // ends the block: bytecode goes on with this instruction
  // Returns the state where they are stored; now_ stays as it is, for other ways from here.
  State store_live_numbers();
  void leave_unless(llvm::Value* condition);
  void leave_always();  // what this instruction needs can't be
  // Calls a function that may fail.
  void run(vm::CodeFunction vm::CodeRuntime::*function, llvm::Value* extra);
  void release(Words words);
  void store(uint32_t r);  // a number, in the stack
  void store_if_number(uint32_t r);
  void clear(uint32_t r);     // makes it None without releasing anything
  void drop_old(uint32_t r);  // before the register gets a number
  void define(uint32_t r, Kind kind, llvm::Value* payload);
  void define(uint32_t r, Words owned);
  void define(vm::Arg destination, Kind kind, llvm::Value* payload);
  // The value of an operand, owned, and moved at a last use; or borrowed.
  Words take(vm::Arg operand, bool is_last);
  std::optional<std::pair<Kind, int64_t>> constant_number(vm::Arg operand) const;
  // The payload of an integer, for instructions whose operand is not a boolean in programs of the
  // compiler's: the register's kind is known afterwards.
  llvm::Value* integer(vm::Arg operand);
  // The payload of either, whose register keeps its kind.
  llvm::Value* integer_or_boolean(vm::Arg operand);
  llvm::Value* integer_up_to(vm::Arg operand, int32_t last);
  // The payload of a float, as a double.
  llvm::Value* floating(vm::Arg operand, Kind as);
  Kind kind_of_operand(vm::Arg operand) const;
  void clear_frame();

  // ---- bytecode_calls.cc ----
  void call(const vm::Instruction& in);
  void tail_call(const vm::Instruction& in);
  void call_closure(const vm::Instruction& in);
  void tail_call_closure(const vm::Instruction& in);
  void call_closure_directly(const vm::Instruction& in, Body in_machine);
  // What is left of calls.
  void enter(const vm::Instruction& in);
  void enter_by_tail_call(const vm::Instruction& in);
  void charge_in_machine(const vm::Instruction& in);
  void call_closure_in_machine(const vm::Instruction& in);
  void tail_call_closure_in_machine(const vm::Instruction& in);
  void receive_result(const vm::Instruction& in);
  void check_result(uint32_t r, Kind expected, Words result);
  // The piece of the function that a call or tail call names, and what it gets.
  llvm::Function* callee_piece(const vm::Instruction& in) const;
  std::vector<Words> arguments_for(llvm::Function* callee, const vm::Instruction& in);
  struct DirectClosure {
    Words words;                  // of the function value
    std::vector<Words> captures;  // None after the last
    llvm::PHINode* size = nullptr;
    llvm::Value *piece = nullptr, *fuel = nullptr, *frame = nullptr;
  };
  bool is_direct_call(const vm::Instruction& in) const;
  DirectClosure direct_closure(const vm::Instruction& in, llvm::BasicBlock* machine);
  void enter_closure(const vm::Instruction& in, const DirectClosure& closure);
  // An instruction that the machine runs.
  void run_in_machine(const vm::Instruction& in);
  void used_by_machine(const vm::Instruction& in);
  void cleared_by_machine(const vm::Instruction& in);
  void concurrent(const vm::Instruction& in);
  struct ClosureOutcomes {
    llvm::BasicBlock *entered, *done;
  };
  ClosureOutcomes closure_outcomes(llvm::Value* exit);
  std::vector<Words> take_arguments(const vm::Instruction& in);
  int64_t room_of(const vm::Instruction& in) const;
  void charge_call(const vm::Instruction& in);
  uint32_t block_after_call() const;
  RegisterSet live_across(const vm::Instruction& in) const;
  void keep_across(const vm::Instruction& in);
  llvm::Function* landing(const vm::Instruction& in);
  int64_t own_bytes() const;
  llvm::Value* above(llvm::Value* base);
  llvm::Value* below(llvm::Value* base);
  PieceArguments with_arguments(const std::vector<Words>& words, llvm::Value* base);
  void jump_above(PieceArguments values, llvm::Value* frame, llvm::Function* resume,
                  llvm::Value* piece);
  Kind expected_result(const vm::Instruction& in) const;

  // ---- bytecode_instructions.cc ----
  void instruction(const vm::Instruction& in);
  void move(const vm::Instruction& in);
  void if_true(const vm::Instruction& in);
  void if_equal(const vm::Instruction& in);
  void switch_on(const vm::Instruction& in);
  // This and the following return false if the machine is to run the instruction.
  bool plain(const vm::Instruction& in);

  // ---- bytecode_numbers.cc ----
  bool binary(const vm::Instruction& in);
  bool divide(const vm::Instruction& in);
  bool logic(const vm::Instruction& in);
  bool floats(const vm::Instruction& in);
  bool select(const vm::Instruction& in);
  bool convert(const vm::Instruction& in);

  // ---- bytecode_cells.cc ----
  // Ends code that ran the instruction itself, from the state `before`: where `other` begins, the
  // machine runs it. Goes on behind both.
  void or_in_machine(const vm::Instruction& in, const State& before, llvm::BasicBlock* other);
  bool get_field(const vm::Instruction& in);
  bool get_tag(const vm::Instruction& in);
  bool take_fields(const vm::Instruction& in);
  bool reuse_adt(const vm::Instruction& in);
  bool array_size(const vm::Instruction& in);
  bool array_set(const vm::Instruction& in);
  bool array_push(const vm::Instruction& in);
  // An instruction that reads an integer at that offset of an object of the type.
  bool read_number(const vm::Instruction& in, int32_t type, int64_t offset);
  // Whether an instruction that changes an array can do so in place.
  bool may_change(const vm::Instruction& in, vm::Arg array, vm::Arg value) const;
  // The type index in the operand's register, which may borrow.
  llvm::ConstantInt* type_in(vm::Arg object, int32_t type);
  void drop_last(vm::Arg object);  // at its last use
  // Goes to `otherwise` unless the condition holds.
  void require(llvm::Value* condition, llvm::BasicBlock* otherwise);
  // Goes to `otherwise` unless the words are an object of the type; returns it.
  llvm::Value* object_of(Words words, int32_t type, llvm::BasicBlock* otherwise);
  // The same for a cell with that many fields.
  llvm::Value* cell_of(Words words, size_t size, llvm::BasicBlock* otherwise);
  // Of a field of a cell or an element of an array.
  llvm::Value* element_place(llvm::Value* object, llvm::Value* index);
  llvm::Value* is_tensor(Words words);
  // Whether nothing else refers to the object.
  llvm::Value* is_sole(llvm::Value* object);

  // ---- bytecode_tensors.cc ----
  bool match_tensor(const vm::Instruction& in);
  bool may_match(vm::Arg value, std::span<const vm::DimPattern> sizes) const;

  BytecodeWriter& w_;
  ModuleWriter& m_;
  const vm::FunctionUnit& function_;
  const uint32_t index_, first_op_;
  const BytecodeFlow flow_;
  const RegisterSet borrowers_;  // the registers that borrow (vm/isa/opcodes.def)
  const std::map<uint32_t, Kind> closure_results_;
  std::vector<std::optional<State>> entry_;  // of each block, once it is reached
  std::vector<uint32_t> changed_;
  std::map<uint32_t, llvm::Function*> pieces_;    // of blocks that begin one
  std::map<uint32_t, llvm::Function*> landings_;  // of calls
  std::vector<Pending> pending_;

  // The walk's place.
  State now_;
  uint32_t at_ = 0;
  bool ended_ = false;
  const RegisterSet* live_ = nullptr;  // before the instruction; only while writing
  Piece* piece_ = nullptr;             // null while the kinds are found
  Builder b_;
};

template <class Write>
void FunctionTranslator::rarely(llvm::Value* condition, const Write& write) {
  if (!writing()) return;
  llvm::BasicBlock* const rare = new_block("rare");
  llvm::BasicBlock* const next = new_block("next");
  b_.CreateCondBr(condition, rare, next, m_.unlikely());
  b_.SetInsertPoint(rare);
  write();
  if (!b_.GetInsertBlock()->getTerminator()) b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

}  // namespace tenon::codegen

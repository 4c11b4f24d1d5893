// Lowers one function of graph IR to virtual code.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/bytecode/borrowing.h"
#include "codegen/bytecode/constant_pool.h"
#include "codegen/bytecode/lower_sizes.h"
#include "codegen/bytecode/packed_table.h"
#include "codegen/bytecode/result_tensors.h"
#include "codegen/bytecode/variable_uses.h"
#include "codegen/bytecode/virtual_code.h"
#include "graph/ir/infer.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/module.h"
#include "graph/ir/tail_calls.h"

namespace tenon::codegen {

// Function index in the unit, by name.
using FunctionIndices = std::unordered_map<std::string_view, uint32_t>;

// Throws an Unsupported error unless the file format can hold the name.
void require_name(const char* what, std::string_view name, const Span& span);

// Whether a register with a value of this type owns it: integers, booleans and floats own nothing.
bool owns(const graph::TypeRef& type);

class FunctionLowering {
 public:
  // `function` is functions[self]. Constants, packed names and spans are added to `unit`;
  // `constants` and `packed` are the unit's tables.
  FunctionLowering(vm::Unit* unit, ConstantPool* constants, PackedTable* packed,
                   const FunctionIndices& functions, const graph::Module& module,
                   const Borrowing& borrowing, const graph::Signatures& signatures,
                   const graph::TailCalls& tail_calls, const graph::FunctionExpr& function,
                   uint32_t self)
      : unit_(*unit),
        constants_(*constants),
        packed_(*packed),
        functions_(functions),
        module_(module),
        borrowing_(borrowing),
        signatures_(signatures),
        tail_calls_(tail_calls),
        function_(function),
        self_(self),
        referred_(tail_calls.stay_unchecked(function.name)) {}

  // Call once. Throws an Unsupported error, with the span, for what bytecode can't express.
  VirtualCode run();

 private:
  using Arg = vm::Arg;
  using Opcode = vm::Opcode;

  // ---- blocks (lower_function.cc) ----
  // With `tail`, the block's result is the function's, and a call in tail position reuses the
  // frame.
  void lower_block(const graph::BlockRef& block, bool tail);
  void lower_binding(const graph::Binding& binding, bool tail);
  // Whether the binding needs no code: a tuple of which only fields are read, or a field of one.
  bool bind_without_code(const graph::Binding& binding);
  // The values of a binding's arms, which meet in one block: none, one, or the fields of a tuple.
  // In tail position each arm returns its value.
  class Join;
  void lower_if(const graph::Binding& binding, const graph::If& branch, bool tail);
  void lower_match(const graph::Binding& binding, const graph::Match& match, bool tail);
  class MatchLowering;  // lower_match.cc
  // The field of a cell, which has `cell_size` fields, or of a tuple; borrowed if the object is and
  // `borrow` asks for it.
  Arg field_of(Arg object, uint32_t index, const graph::TypeRef& type, bool borrow,
               uint32_t cell_size = 0);
  void lower_construct(const graph::Construct& made, Arg dst);
  void lower_closure(const graph::Closure& closure, Arg dst);
  void lower_loop(const graph::Binding& binding, const graph::Loop& loop);
  // The scalar, or the only element of a boolean tensor, to be compared with 0.
  Arg truth(const graph::Operand& condition);

  // ---- calls (lower_call.cc) ----
  void lower_call(const graph::Binding& binding, const graph::Call& call, bool tail);
  void call_global(const graph::Binding& binding, const graph::Call& call, bool tail);
  void lower_intrinsic(graph::MemoryIntrinsic intrinsic, const graph::Call& call,
                       const graph::VarRef& var);
  // `matched`: the next binding matches the result.
  void lower_packed(const graph::Call& call, Arg dst, bool matched);
  void check_returned(const graph::Call& call, Arg value);  // with the type that the call states
  // A call of a packed function that is the instruction.
  void lower_as_instruction(vm::Opcode opcode, const graph::Call& call, Arg dst);
  // What comes out of an array or from a function value, which may be the host's, has any size:
  // where the type tells sizes, it is written to a register, even if nothing reads it, and checked.
  void write_unknown(Arg dst, const graph::TypeRef& type, const std::function<void(Arg)>& write);
  void lower_kernel(const graph::Call& call);
  // The scalar as a tensor of rank 0.
  Arg as_tensor(const graph::Operand& operand, DataType dtype);
  // The module's device with that index.
  Arg device(int64_t index) const;
  // An attribute's value as an argument of a packed call.
  Arg attribute(std::string_view name, const Any& value);

  // ---- operators on scalars (lower_scalar.cc) ----
  class ScalarLowering;
  void lower_scalar_op(const graph::Call& call, const graph::TypeRef& type, Arg dst);

  // ---- operands ----
  Arg value(const graph::Operand& operand);        // for `value` operands
  Arg integer(const graph::Operand& operand);      // for `int` operands: scalars
  Arg in_register(const graph::Operand& operand);  // for `use` operands
  std::vector<Arg> values(const Array<graph::Operand>& operands);
  // The fields of a tuple.
  std::vector<Arg> fields(const graph::Operand& tuple);
  Arg load(Arg value);  // loads an immediate or a constant into a register

  // The register that the variable is bound to; none if nothing reads it or it has unit type.
  Arg define(const graph::VarRef& var);

  [[noreturn]] void refuse(const std::string& what, std::string_view help = {}) const;

  vm::Unit& unit_;
  ConstantPool& constants_;
  PackedTable& packed_;
  const FunctionIndices& functions_;
  const graph::Module& module_;
  const Borrowing& borrowing_;
  const graph::Signatures& signatures_;  // of the module
  const graph::TailCalls& tail_calls_;
  const graph::FunctionExpr& function_;
  uint32_t self_;
  bool referred_;  // so that tail calls reuse the frame
  VirtualCode code_;
  SizeLowering sizes_{&code_, &constants_};
  const graph::Var* matched_next_ = nullptr;  // what the next binding matches, if it does
  VariableUses uses_;
  ResultTensors results_;
  Span span_;

  std::unordered_map<const graph::Var*, Arg> values_;
  std::unordered_map<const graph::Var*, std::vector<Arg>>
      fields_;  // of tuples that aren't materialised
};

}  // namespace tenon::codegen

// Emits one function. A variable has one register from its binding to its last use; registers that
// hold sizes (symbols, and sizes computed from them) are kept for the whole function, for they hold
// nothing that would need releasing.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/bytecode/constant_pool.h"
#include "codegen/bytecode/liveness.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/module.h"
#include "vm/isa/code_builder.h"

namespace tenon::codegen {

// Refuses what the format of files has no name for.
void require_name(const char* what, std::string_view name, const Span& span);

class FunctionEmitter {
 public:
  FunctionEmitter(vm::Unit* unit, ConstantPool* constants, const graph::FunctionExpr& function)
      : unit_(unit), constants_(constants), function_(function) {}

  void emit(vm::FunctionUnit* out);

 private:
  using Arg = vm::Arg;
  using Opcode = vm::Opcode;

  // ---- blocks (function_emitter.cc) ----
  void emit_signature(vm::FunctionUnit* out);
  using Bindings = Array<Ref<const graph::Binding>>;

  // Emits `bindings`, after which `results` are used. `extra`: see liveness.h. With `tail`, the
  // last binding is the function's result: sets left_frame_ when it left the frame.
  void emit_bindings(const Bindings& bindings, const std::vector<graph::Operand>& results,
                     const std::vector<const graph::Var*>& extra, bool tail);
  // Emits `block`; returns its result as an argument, at its last use where it is the block's own.
  Arg emit_block(const graph::BlockRef& block, const std::vector<const graph::Var*>& extra,
                 bool tail);
  // Emits the bindings of a loop's body, in which a variable of the loop may be moved out at its
  // last use. Puts each result into a register that is free to be overwritten, or leaves it in the
  // variable that it is the next value of.
  std::vector<uint32_t> emit_into_registers(const Bindings& bindings,
                                            const std::vector<graph::Operand>& results,
                                            const std::vector<const graph::Var*>& vars);
  // Emits var = value. With `tail`, the function's result: true when the instruction left the
  // frame.
  bool emit_binding(const graph::Binding& binding, bool unused, bool tail);
  bool emit_if(const graph::If& branch, Arg dst, bool tail);
  // The one element of a boolean tensor, in a register that the caller frees.
  uint32_t read_truth(Arg tensor);
  void emit_loop(const graph::Loop& loop, Arg dst);
  void emit_loop_step(const graph::Loop& loop);
  bool emit_call(const graph::Call& call, const graph::TypeRef& type, Arg dst, bool tail);

  // ---- calls (emit_call.cc) ----
  void emit_intrinsic(graph::MemoryIntrinsic intrinsic, const graph::Call& call,
                      const graph::TypeRef& type, Arg dst);
  void emit_packed(const graph::Call& call, Arg dst);
  void emit_kernel(const graph::Call& call);
  // The scalar as a tensor of rank 0.
  Arg as_tensor(const graph::Operand& operand, DataType dtype, Arg scalar);
  // An attribute's value as an argument of a packed call.
  Arg attribute(std::string_view name, const Any& value);

  // ---- operators on scalars (emit_scalar.cc) ----
  void emit_scalar_op(const graph::Call& call, const graph::TypeRef& type, Arg dst);

  // ---- operands and registers ----
  Arg value(const graph::Operand& operand);    // for `value` operands
  Arg integer(const graph::Operand& operand);  // for `int` operands: scalars
  // For `use` operands; a constant's register lasts until the binding is emitted.
  Arg in_register(const graph::Operand& operand);
  std::vector<Arg> values(const Array<graph::Operand>& operands);
  // The same, where variables that die here are moved out by their last occurrence.
  std::vector<Arg> consume(const Array<graph::Operand>& operands);
  uint32_t new_register();
  void free_register(uint32_t index) { free_.push_back(index); }
  // Ends the variables: those that nothing has moved out are killed.
  void release(const std::vector<const graph::Var*>& dead);
  uint32_t register_of(const graph::Var* var) const;

  // ---- sizes, matches and checks (emit_sizes.cc) ----
  Arg size(const Dim& dim);  // an immediate or a register
  Arg compute_size(const Dim& dim);
  std::vector<Arg> sizes(const Array<Dim>& dims);
  bool is_bound(const Dim& dim) const;
  // Dims that are compared once all symbols of a match are bound: those of `value`'s shape, or
  // elements that were read into registers.
  struct Postponed {
    Arg value;
    Array<Dim> dims;
    std::vector<size_t> later;
    std::vector<uint32_t> elements;
  };
  // Patterns of match_shape; dims that must be computed from symbols bound by the same match are
  // ignored there and returned in `later`.
  std::vector<vm::DimPattern> patterns(const Array<Dim>& dims, std::vector<size_t>* later);
  void match_dims(Arg value, const Array<Dim>& dims, std::vector<Postponed>* postponed);
  void match_elements(Arg source, const graph::TypeRef& type, const Array<Dim>& dims,
                      std::vector<Postponed>* postponed);
  // Fields of tuples are taken into registers, appended to `fields`, which the caller kills.
  void match_type(Arg value, const graph::TypeRef& type, std::vector<Postponed>* postponed,
                  std::vector<uint32_t>* fields);
  void match_postponed(const std::vector<Postponed>& all);
  void emit_match_shape(const graph::MatchShape& match);
  void emit_parameter_checks();
  void emit_check(const graph::Check& check);

  [[noreturn]] void refuse(const std::string& what, std::string_view help = {}) const;

  vm::Unit* unit_;
  ConstantPool* constants_;
  const graph::FunctionExpr& function_;
  vm::CodeBuilder code_;
  Span span_;

  std::unordered_map<const graph::Var*, uint32_t> registers_;
  std::vector<uint32_t> free_, temporaries_;
  uint32_t register_count_ = 0;

  std::unordered_map<std::string, uint32_t> symbols_;
  // Sizes computed so far, by text; a block's own are forgotten at its end.
  std::unordered_map<std::string, uint32_t> sizes_;

  // Variables that die at the binding being emitted: marked as last uses where they stand.
  std::vector<const graph::Var*> dying_;
  std::unordered_set<const graph::Var*> moved_;
  // Variables of loops: dead after their last use in the body, but their registers wait for the
  // next value, which releases what is still there.
  std::unordered_set<const graph::Var*> loop_vars_;
  bool left_frame_ = false;  // the code emitted last has left the frame
};

}  // namespace tenon::codegen

// CodeBuilder: writes one function's code, instruction by instruction, with labels.
//
//   CodeBuilder b;
//   Label small = b.make_label();
//   b.emit(Opcode::Lt, {Arg::reg(1), Arg::reg(0), Arg::imm(2)});
//   b.emit(Opcode::If, {Arg::reg(1), b.to(small)});
//   ...
//   b.bind(small);
//   b.emit(Opcode::Ret, {Arg::last(0)});
//   function.code = b.finish(&function.spans);
//
// Operand counts and kinds are checked as instructions are emitted (an Internal error); ranges are
// checked by the verifier, once the whole unit is known.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "vm/isa/unit.h"

namespace tenon::vm {

struct Label {
  uint32_t id = 0;
};

// A condition on a dimension, for match_shape, match_tensor and match_prim_value.
struct DimPattern {
  DimMatch match = DimMatch::Ignore;
  Arg operand = Arg::none();

  static DimPattern ignore() { return {}; }
  static DimPattern equals(int64_t value) { return {DimMatch::EqualsImmediate, Arg::imm(value)}; }
  static DimPattern equals_register(uint32_t r) { return {DimMatch::EqualsRegister, Arg::reg(r)}; }
  static DimPattern store(uint32_t r) { return {DimMatch::Store, Arg::reg(r)}; }
};

// As operand words, two per pattern.
std::vector<Arg> dim_operands(std::span<const DimPattern> dims);

class CodeBuilder {
 public:
  Label make_label();
  // Places the label at the next instruction. Call once per label.
  void bind(Label label);
  // An operand that jumps to the label, which may be bound before or after.
  Arg to(Label label) const;

  // Attributes the following instructions to spans[span] of the unit.
  void set_span(uint32_t span);

  void emit(Opcode opcode, std::span<const Arg> operands, std::span<const Arg> list = {});
  void emit(Opcode opcode, std::initializer_list<Arg> operands, std::span<const Arg> list = {}) {
    emit(opcode, std::span<const Arg>(operands.begin(), operands.size()), list);
  }

  uint32_t size() const { return static_cast<uint32_t>(code_.size()); }  // in words
  // Resolves the labels and returns the code; every label used must be bound.
  std::vector<Word> finish(std::vector<CodeSpan>* spans);

 private:
  std::vector<Word> code_;
  std::vector<CodeSpan> spans_;
  std::vector<int64_t> label_offsets_;  // -1 if not bound
  std::vector<uint32_t> fixups_;        // words that hold a label's id
};

}  // namespace tenon::vm

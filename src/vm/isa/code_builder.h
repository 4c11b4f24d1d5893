// CodeBuilder: writes the code of one function, instruction by instruction, with labels.
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
// Operand counts and kinds are checked as they are emitted (an Internal error); ranges are checked
// by the verifier, once the whole unit is known.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "vm/isa/unit.h"

namespace tenon::vm {

struct Label {
  uint32_t id = 0;
};

// What a dimension must satisfy, for match_shape, match_tensor and match_prim_value.
struct DimPattern {
  DimMatch match = DimMatch::Ignore;
  Arg operand = Arg::none();

  static DimPattern ignore() { return {}; }
  static DimPattern equals(int64_t value) { return {DimMatch::EqualsImmediate, Arg::imm(value)}; }
  static DimPattern equals_register(uint32_t r) { return {DimMatch::EqualsRegister, Arg::reg(r)}; }
  static DimPattern store(uint32_t r) { return {DimMatch::Store, Arg::reg(r)}; }
};

class CodeBuilder {
 public:
  Label make_label();
  // The label is the next instruction. Once per label.
  void bind(Label label);
  // The operand that jumps there; bound later or earlier.
  Arg to(Label label) const;

  // Instructions from here on come from spans[span] of the unit.
  void set_span(uint32_t span);

  void emit(Opcode opcode, std::span<const Arg> operands, std::span<const Arg> list = {});
  void emit(Opcode opcode, std::initializer_list<Arg> operands, std::span<const Arg> list = {}) {
    emit(opcode, std::span<const Arg>(operands.begin(), operands.size()), list);
  }

  // The instructions whose operands take two words.
  void match_shape(Arg value, std::span<const DimPattern> dims);
  void match_tensor(Arg value, DataType dtype, std::span<const DimPattern> dims);
  void match_prim_value(Arg value, DimPattern expected);
  void switch_on(Arg value, Label otherwise, std::span<const std::pair<int64_t, Label>> cases);

  // R[dst] := value, through a constant of the unit when it doesn't fit an immediate.
  void load_int(Unit& unit, uint32_t dst, int64_t value);

  uint32_t size() const { return static_cast<uint32_t>(code_.size()); }  // in words
  // Resolves the labels and hands over the code; every label used must be bound.
  std::vector<Word> finish(std::vector<CodeSpan>* spans);

 private:
  std::vector<Word> code_;
  std::vector<CodeSpan> spans_;
  std::vector<int64_t> label_offsets_;  // -1: not bound
  std::vector<uint32_t> fixups_;        // words that hold a label's id
};

}  // namespace tenon::vm

// The pre-decoder: turns verified code into the form that the dispatch loop runs.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/interp/program.h"

namespace tenon::vm {

struct Fusion;

// Operands are read before a last use clears its register: if several arguments are one register
// and some of them last uses, only the last argument remains a last use. `last_reader` is scratch
// space, indexed by register. Args is a span of ValueRef. Takes linear time.
template <class Args>
void keep_last_use_of_each(Args&& args, std::vector<uint32_t>& last_reader) {
  const auto count = static_cast<uint32_t>(args.size());
  for (uint32_t i = 0; i < count; ++i) {
    const ValueRef& ref = args[i];
    if (!ref.constant) last_reader[static_cast<size_t>(ref.reg)] = i;
  }
  for (uint32_t i = 0; i < count; ++i) {
    ValueRef& ref = args[i];
    if (!ref.last) continue;
    const uint32_t reader = last_reader[static_cast<size_t>(ref.reg)];
    if (reader == i) continue;
    ref.last = false;
    args[reader].last = true;
  }
}

// Fills the program's ops from its unit, which must be verified.
class Decoder {
 public:
  Decoder(Program& program, WorkBudget& budget) : p_(program), budget_(budget) {}
  void run();

 private:
  void function(FunctionCode& code, const FunctionUnit& unit);
  void link(Op& op);
  void fuse(uint32_t first, uint32_t count);
  void fuse_branch(Op* op, uint32_t index, const Fusion& f);
  void fuse_step(Op* op, uint32_t index, const Fusion& f);
  void add(const Op& op, Handler handler, uint32_t offset);
  void change(Op& op, uint32_t index, Handler handler);

  // Each fills an instruction's Op and returns the form to run; `index` is the instruction's, for
  // jumps.
  Handler instruction(Op& op, const Instruction& in, uint32_t index);
  Handler plain(Op& op, const Instruction& in);
  Handler function_value(Op& op, const Instruction& in);
  Handler call(Op& op, const Instruction& in);
  Handler registers(Op& op, const Instruction& in);
  Handler match(Op& op, const Instruction& in);
  Handler binary(Op& op, const Instruction& in);
  Handler go_to(Op& op, int32_t distance);
  Handler if_true(Op& op, const Instruction& in, uint32_t index);
  Handler if_equal(Op& op, const Instruction& in, uint32_t index);
  Handler switch_on(Op& op, const Instruction& in, uint32_t index);
  Handler ret(Op& op, const Instruction& in);
  Handler move(Op& op, const Instruction& in);
  Handler load_int(Op& op, const Instruction& in);

  // Operands of type T, owned by the program; stores them in the Op if they derive from Operands.
  template <OpClass op_class>
  OperandsOf<op_class>& operands(Op& op);
  void read_operands(Operands& o, const Instruction& in);
  void read_function(CallOperands& o, const Instruction& in);
  ValueRef value(Arg arg, bool is_int = false);
  const AnyView* pooled(Any value);
  int32_t distance(Arg label, uint32_t index) const;

  Program& p_;
  WorkBudget& budget_;
  const FunctionCode* function_ = nullptr;  // being decoded
  std::vector<int32_t> op_of_word_;
  std::vector<Handler> chosen_;             // of the function's Ops
  std::vector<uint32_t> last_reader_;       // of each register, in the current instruction
  std::vector<size_t> one_argument_calls_;  // indices of their Ops
};

}  // namespace tenon::vm
